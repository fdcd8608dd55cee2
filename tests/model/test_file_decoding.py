"""What a method keeps besides its connections comes back from a file, and is taken for nothing but what it is."""

import copy

import numpy as np
import pytest

from spacenet.errors import ModelFileError
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.file_parts import Arrays
from spacenet.model.model import Model
from tests.model.forging import Change, Facts, forged, put, replaced, say
from tests.model.support import DENSITY_CASES, blobs, density_model, model


@pytest.fixture(scope="module")
def described() -> dict[str, Model]:
    """Models with class statistics, by their representation."""
    return {kind: density_model(kind) for kind in DENSITY_CASES}


@pytest.mark.parametrize("kind", DENSITY_CASES)
def test_class_statistics_come_back_and_learning_goes_on_to_the_bit(kind: str, described: dict[str, Model]) -> None:
    first, shape = copy.deepcopy(described[kind]), described[kind].input_shape
    again = from_bytes(to_bytes(first))
    assert to_bytes(again) == to_bytes(first)
    x = blobs([0, "cat"], shape=shape)[0]
    np.testing.assert_array_equal(again.predict_proba(x), first.predict_proba(x))
    for each in (first, again):
        each.learn(*blobs([7, 0], shape=shape))
    assert to_bytes(again) == to_bytes(first)


def test_a_view_of_a_network_that_has_grown_since_comes_back() -> None:
    grown = density_model("features", [0, 1], [2, 3], [4, 5], [6, 7], connections=(0.2,), expand="auto")
    assert grown.method.ledger.size("conv1") > len(grown.method.extra_state()["view/conv1.norm1.var"]) == 8
    again = from_bytes(to_bytes(grown))
    x = blobs([0, 7], shape=(1, 8, 8))[0]
    np.testing.assert_array_equal(again.predict_proba(x), grown.predict_proba(x))


def _all(name: str, value: float) -> Change:
    return put(name, ..., value)


def _cut(name: str) -> Change:
    return replaced(name, lambda array: array[..., :-1].copy())


def _all_cut(facts: Facts, arrays: Arrays) -> None:
    """The network's first view, before units that the first task is connected to were there."""
    facts["config"]["net"]["hidden"][0] = 1
    for part in ("scale", "shift", "mean", "var"):
        replaced(f"extra/view/conv1.norm1.{part}", lambda array: array[:1].copy())(facts, arrays)


STATISTICS, SCALING, VIEW = "extra/density/classes", "extra/density/scaling", "extra/view"
CRAFTED: dict[str, tuple[str, Change, str]] = {
    "no mean": ("inputs", replaced(f"{STATISTICS}/mean", lambda array: None), "class statistics: mean is missing"),
    "no scale": ("inputs", replaced(f"{SCALING}/factor", lambda array: None), "scale: factor is missing"),
    "another name": (
        "inputs",
        lambda facts, arrays: arrays.update({f"{STATISTICS}/x": np.zeros(3, np.float32)}),
        "content .x",
    ),
    "another part": ("inputs", lambda facts, arrays: arrays.update({"extra/x": np.zeros(3, np.float32)}), "content .x"),
    "a section": (
        "inputs",
        lambda facts, arrays: arrays.update({"extra/density/x": np.zeros(3, np.float32)}),
        "content .x",
    ),
    "a view of nothing": (
        "inputs",
        lambda facts, arrays: arrays.update({f"{VIEW}/hidden1.bias": np.zeros(30, np.float32)}),
        "unknown content .view/hidden1.bias",
    ),
    "another type": ("inputs", replaced(f"{STATISTICS}/mean", lambda array: array.astype(np.int32)), "not numbers"),
    "one class less": ("inputs", replaced(f"{STATISTICS}/rest", lambda array: array[:-1].copy()), "rest is missing"),
    "other components": ("inputs", say("config.method.components", 3), "weight is missing or of the wrong size"),
    "absurd directions": (
        "inputs",
        say("config.method.directions", 10**15),
        "directions: .* is out of range",
    ),
    "no directions": ("inputs", say("config.method.directions", 0), "directions: 0"),
    "no shrinkage": ("inputs", say("config.method.shrinkage", 0.0), "shrinkage"),
    "fewer features": ("inputs", _cut(f"{STATISTICS}/direction"), "direction is missing or of the wrong size"),
    "another representation": (
        "edges",
        say("config.method.representation", "inputs"),
        "mean is missing or of the wrong",
    ),
    "impossible edges": ("inputs", say("config.method.representation", "edges"), "are not images with edges"),
    "learned features": ("inputs", say("config.method.representation", "features"), "view.* cannot have had 0 units"),
    "NaN mean": ("inputs", put(f"{STATISTICS}/mean", (0, 0, 0), np.nan), "mean has values"),
    "infinite scale": ("inputs", _all(f"{SCALING}/factor", np.inf), "factor has values"),
    "NaN weight": ("inputs", put(f"{STATISTICS}/weight", (0, 0), np.nan), "weight has values"),
    "more than all": ("inputs", put(f"{STATISTICS}/weight", (0, 0), 0.1), "weight has values"),
    "class of no weight": ("inputs", put(f"{STATISTICS}/weight", (0, 0), -np.inf), "weight has values"),
    "hardly a weight": ("inputs", put(f"{STATISTICS}/weight", (0, 0), -1e30), "weight has values"),
    "sharpness": ("inputs", say("config.method.sharpness", 1e300), "sharpness"),
    "true for a weight": ("inputs", say("config.method.network_weight", True), "network_weight"),
    "negative variance": ("inputs", put(f"{STATISTICS}/variance", (0, 0, 0), -1e-3), "variance has values"),
    "negative rest": ("inputs", put(f"{STATISTICS}/rest", (0, 0), -1e-3), "rest has values"),
    "infinite direction": ("inputs", put(f"{STATISTICS}/direction", (0, 0, 0, 0), np.inf), "direction has values"),
    "a matrix where nothing is whitened": (
        "inputs",
        replaced(f"{SCALING}/factor", lambda array: np.eye(8, dtype=np.float32)),
        "factor is missing",
    ),
    "an oblong matrix": ("features", _cut(f"{SCALING}/factor"), "factor is missing or of the wrong size"),
    "no view": ("features", replaced(f"{VIEW}/conv1.norm1.var", lambda array: None), "conv1.norm1.var is missing"),
    "a larger view": (
        "features",
        replaced(f"{VIEW}/linear.norm.mean", lambda array: np.zeros(11, np.float32)),
        "missing",
    ),
    "a number for a view": (
        "features",
        replaced(f"{VIEW}/conv1.norm1.scale", lambda array: np.ones((), np.float32)),
        "conv1.norm1.scale is missing or of the wrong size",
    ),
    "a longer view": (
        "features",
        replaced(f"{VIEW}/conv1.norm1.scale", lambda array: np.zeros(9, np.float32)),
        "conv1 cannot have had 9 units",
    ),
    "a class too many": (
        "features",
        replaced(f"{VIEW}/output.bias", lambda array: np.zeros(3, np.float32)),
        "output.bias is missing",
    ),
    "an earlier view": ("features", _all_cut, "a connection of a unit that did not exist yet"),
    "negative batch-norm variance": ("features", put(f"{VIEW}/conv1.norm1.var", 0, -1.0), "conv1.norm1.var has values"),
    "NaN of what is typical": ("inputs", put("extra/typicality/classes", (0, 0), np.nan), "classes has values"),
    "no spread": ("inputs", put("extra/typicality/classes", (0, 1), 0.0), "classes has values"),
    "levels out of order": ("inputs", put("extra/typicality/classes", (0, 5), 99.0), "classes has values"),
    "what is typical of a class less": (
        "inputs",
        replaced("extra/typicality/classes", lambda array: array[1:]),
        "classes is missing or of the wrong size",
    ),
    "counts below 0": ("inputs", put("extra/density/counts", 0, -1.0), "counts are of the wrong size or not possible"),
    "counts of a class less": (
        "inputs",
        replaced("extra/density/counts", lambda array: array[1:]),
        "counts are of the wrong size or not possible",
    ),
    "moments of a Gaussian less": (
        "inputs",
        replaced("extra/density/moments/scatter", lambda array: array[1:]),
        "scatter is of the wrong size or has values",
    ),
    "a variance below 0": ("inputs", put("extra/density/moments/scatter", (0, 2), -1.0), "variances below 0"),
    "a mean that is no number": ("inputs", put("extra/density/moments/mean", (0, 2), np.nan), "mean is of the wrong"),
    "infinite view": ("features", put(f"{VIEW}/output.bias", 0, np.inf), "output.bias has values"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_class_statistics_are_refused(name: str, described: dict[str, Model]) -> None:
    kind, change, reason = CRAFTED[name]
    with pytest.raises(ModelFileError, match=reason):
        from_bytes(forged(described[kind], change))


def test_class_statistics_where_none_are_kept_are_refused() -> None:
    with pytest.raises(ModelFileError, match="unknown content .density/x"):
        from_bytes(forged(model(), lambda facts, arrays: arrays.update({"extra/density/x": np.zeros(1, np.float32)})))


def test_a_gaussian_without_weight_is_as_it_should_be(described: dict[str, Model]) -> None:

    def change(facts: Facts, arrays: Arrays) -> None:
        put(f"{STATISTICS}/weight", (0, 1), -np.inf)(facts, arrays)
        for name in ("count", "mean", "scatter"):  # of files of earlier versions, or of many columns
            del arrays[f"extra/density/moments/{name}"]

    few = from_bytes(forged(described["inputs"], change))
    assert np.isfinite(few.predict_proba(blobs([0])[0])).all()
