"""Models of every method: they predict from their file, learn on alike, and say what they cannot do."""

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spacenet
from spacenet.config.model import NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import DataError, ModelFileError, RunError, SettingsError
from spacenet.methods import get_method
from spacenet.methods.icarl import ICaRL
from spacenet.methods.shared.class_statistics import UntrainedMethod
from spacenet.model.evaluation import evaluate_model
from spacenet.model.export import export_model
from spacenet.model.file import from_bytes, load_model, save_model, to_bytes
from spacenet.model.file_state import SAMPLES, STATE
from spacenet.model.inspection import inspect_model
from spacenet.model.model import Model
from spacenet.registry import METHODS
from spacenet.report.card import model_card
from spacenet.report.tables import inspection_tables
from tests.model.forging import Change, forged, put, replaced
from tests.model.support import LIGHT, blobs, model_config

IMAGES = (1, 8, 8)
NEED_OLD_DATA = ("joint", "spacenet-rehearsal")
SHARED = [name for name in METHODS if not get_method(name).divides_network]
"""Methods that divide no network among tasks."""
PLAIN = ["naive", "joint", "ewc", "si", "mas", "lwf", "er", "clnp", "cwr", "ar1"]
"""Methods whose network alone predicts."""
SIDE_BY_SIDE = ["den", "packnet", "piggyback", "pnn", "pathnet", "independent"]
"""Methods with a network for each task."""
each = pytest.mark.parametrize("name", METHODS)
each_shared = pytest.mark.parametrize("name", SHARED)


def make(name: str, shape: tuple[int, ...] = (8,), net: NetConfig | None = None, **settings: Any) -> Model:
    """A model that has learned two tasks, or the one that its method can learn without old data."""
    training = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.05)
    learned = Model(model_config(name, net, training=training, **settings), shape)
    for task in ([0, 1], [2, 3])[: 1 if name in NEED_OLD_DATA else 2]:
        learned.learn(*blobs(task, 8, shape))
    return learned


@cache
def made(name: str) -> Model:
    """The same, not to be changed."""
    return make(name)


def samples(shape: tuple[int, ...] = (8,)) -> np.ndarray:
    return blobs([0, 1, 2, 3], 3, shape)[0]


@each
def test_a_file_answers_like_the_model_and_learns_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    learned, path = copy.deepcopy(made(name)), tmp_path / "model.safetensors"
    save_model(path, learned)
    again = load_model(path)
    assert torch.equal(again.scores(samples()), learned.scores(samples()))
    np.testing.assert_array_equal(again.predict_proba(samples()), learned.predict_proba(samples()))
    assert path.read_bytes() == to_bytes(again)
    if name in NEED_OLD_DATA:
        with pytest.raises(SettingsError, match=f"{name} can only continue with all old data.*Train a new model"):
            again.learn(*blobs([4, 5], 8))
        assert to_bytes(again) == path.read_bytes()
        return
    for model in (learned, again):
        model.learn(*blobs([4, 5], 8))
    assert again.tasks == [(0, 1), (2, 3), (4, 5)]
    assert to_bytes(again) == to_bytes(learned)
    assert torch.equal(from_bytes(to_bytes(again)).scores(samples()), learned.scores(samples()))


@each_shared
def test_networks_for_images_come_back(name: str) -> None:
    """With batch norm and feature maps."""
    learned = make(name, IMAGES, NetConfig("wrn-10-1" if name in ("packnet", "pathnet", "den") else "small-cnn"))
    again = from_bytes(to_bytes(learned))
    assert torch.equal(again.scores(samples(IMAGES)), learned.scores(samples(IMAGES)))


@each
def test_the_most_probable_class_is_the_one_with_the_largest_score(name: str) -> None:
    learned = made(name)
    shares = learned.predict_proba(samples())
    assert np.allclose(shares.sum(1), 1)
    assert (shares.argmax(1) == learned.scores(samples()).argmax(1).numpy()).all()
    assert np.allclose(np.exp(learned.class_scores(samples())), shares)


@each
def test_the_estimator_learns_it_call_by_call(name: str) -> None:
    own = dict(LIGHT.get(name, {}))
    small = {"selected": (10,), "reserved": (4,), "connections": (0.1,)} if name not in SHARED else {}
    params = {"method": name, "hidden": (30, 30), "epochs": 1, **small} | ({"method_settings": own} if own else {})
    classifier = spacenet.SpaceNetClassifier(**params).partial_fit(*blobs([0, 1], 6))
    if name not in NEED_OLD_DATA:
        classifier.partial_fit(*blobs([2, 3], 6))
        assert classifier.classes_.tolist() == [0, 1, 2, 3]
    assert (classifier.space_left_ is None) == (name in SHARED)
    assert len(classifier.predict(samples())) == 12


@each
def test_labels_can_be_edited(name: str) -> None:
    learned = copy.deepcopy(made(name))
    before, shares = to_bytes(learned), learned.predict_proba(samples())
    learned.rename(0, 10)
    learned.merge([10, 1], into=7)
    assert learned.classes[0] == 7
    np.testing.assert_allclose(learned.predict_proba(samples())[:, 0], shares[:, :2].sum(1))
    learned.undo()
    learned = from_bytes(before)
    learned.rename(0, 10)
    learned.undo()
    assert to_bytes(learned) == before


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NEED_OLD_DATA])
def test_a_task_can_be_undone(name: str) -> None:
    learned = copy.deepcopy(made(name))
    before = to_bytes(learned)
    learned.learn(*blobs([4, 5], 8))
    learned.undo()
    assert to_bytes(learned) == before


@each_shared
def test_forgetting_works_or_says_why_not(name: str) -> None:
    learned = copy.deepcopy(made(name))
    if not issubclass(get_method(name), UntrainedMethod):
        with pytest.raises(SettingsError, match=f"{name} cannot remove a class: .* numbers that all classes share"):
            learned.forget(1)
        return
    scores = learned.scores(samples())
    learned.forget(1)
    assert learned.classes == [0, 2, 3]
    again = from_bytes(to_bytes(learned))
    assert torch.equal(again.scores(samples()), learned.scores(samples()))
    found = again.scores(samples())
    if name in ("ncm", "gaussian"):  # the others' answers do not depend on the class; in the others, as documented
        torch.testing.assert_close(found, scores[:, [0, 2, 3]])
    learned.forget(0)
    assert learned.tasks == [(), (2, 3)]
    again = from_bytes(to_bytes(learned))
    again.learn(*blobs([0, 1], 8))
    assert again.tasks == [(), (2, 3), (0, 1)]


def test_what_a_forgotten_class_left_is_gone() -> None:
    learned = make("ncm")
    mean = learned.method.state()["network/means"][1].numpy().tobytes()
    assert mean in to_bytes(learned)
    learned.forget(1)
    assert mean not in to_bytes(learned)


@each_shared
def test_what_it_cannot_do_is_said(name: str) -> None:
    learned = made(name)
    refused: dict[str, Callable[[], object]] = {
        "does not divide a network among tasks, so there is nothing to drop": learned.compact,
        "cannot tell unknown classes; choose spacenet-density": lambda: learned.typicality(samples()),
        "counts all samples the same": lambda: learned.learn(
            *blobs([4, 5], 8), sample_weight=np.linspace(1, 2, 16), config=None
        ),
    }
    for reason, action in refused.items():
        with pytest.raises(SettingsError, match=reason):
            action()
    assert learned.space_left() is None


@each_shared
def test_samples_of_known_classes_are_one_more_task(name: str, caplog: pytest.LogCaptureFixture) -> None:
    learned = copy.deepcopy(made(name))
    if name in NEED_OLD_DATA:
        with pytest.raises(SettingsError, match="all old data"):
            learned.learn(*blobs([0, 1], 8))
        return
    learned.learn(*blobs([0, 1], 8))
    assert learned.tasks == [(0, 1), (2, 3), (0, 1)]
    assert f"as a new task, because {name} cannot add samples to a class" in caplog.text
    assert learned.predict_proba(samples()).shape == (12, 4)


@pytest.mark.parametrize("name", ["er", "icarl"])
def test_kept_samples_are_in_the_file_and_shown(name: str) -> None:
    learned = make(name, memory_size=8)
    again = from_bytes(to_bytes(learned))
    found = inspect_model(again, len(to_bytes(learned)))
    assert (found.keeps_samples, found.samples_kept) == (True, 8)
    assert "8 of earlier tasks" in str([table.rows for table in inspection_tables(found)])
    assert "Samples of earlier tasks in the file: 8" in model_card(found, "it")
    with pytest.raises(SettingsError, match="memory_size: 8 samples cannot be shared by 12 classes"):
        again.learn(*blobs(list(range(4, 12)), 4))
    assert to_bytes(again) == to_bytes(learned)


def test_kept_samples_that_were_bytes_are_bytes_in_the_file() -> None:
    training = TrainingConfig(epochs=1, batch_size=8, learning_rate=0.05)
    learned = Model(model_config("er", training=training, memory_size=30), (8,))
    rng = np.random.default_rng(0)
    learned.learn(rng.integers(0, 256, (40, 8), dtype=np.uint8), np.arange(40) % 2)
    again = from_bytes(to_bytes(learned))
    assert _arrays(again)[SAMPLES + "x"].dtype == np.uint8
    assert torch.equal(again.method.memory.samples().x, learned.method.memory.samples().x)


@each
def test_inspect_shows_something_sensible(name: str) -> None:
    learned = made(name)
    found = inspect_model(learned, len(to_bytes(learned)))
    text = str([(table.columns, table.rows) for table in inspection_tables(found)])
    assert found.outputs == len(learned.outputs)
    assert found.sizes.packed > 0
    assert f"{name}, seed 0" in text
    assert ("units reserved" in text) == (name not in SHARED)
    assert ("only continue with all old data" in text) == (name in NEED_OLD_DATA)
    card = model_card(found, "it")
    assert ("can be taught more classes" in card) == (name not in NEED_OLD_DATA)


@pytest.mark.parametrize("name", ["ewc", "ncm", "icarl"])
def test_it_is_evaluated(name: str) -> None:
    found = evaluate_model(made(name), *blobs([0, 1, 2, 3], 5))
    assert found.samples == 20


@pytest.mark.parametrize("name", [*PLAIN, *SIDE_BY_SIDE, "slda", "gaussian", "ranpac"])
def test_what_is_one_function_is_exported(name: str, tmp_path: Path) -> None:
    exported = export_model(made(name), tmp_path / "model.pt2", "torch")
    assert exported.max_difference < 1e-4
    if name in PLAIN and name != "clnp":
        layers = [(layer.name, layer.packed, layer.units) for layer in exported.layers]
        assert layers == [("hidden1", 30, 30), ("hidden2", 30, 30)]


@pytest.mark.parametrize("name", ["icarl", "fecam", "acil", "ldc", "dgr", "dense-density"])
def test_what_is_not_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"what {name} predicts with is not a plain network"):
        export_model(made(name), tmp_path / "model.onnx", "onnx")
    assert list(tmp_path.iterdir()) == []


# Files


@each_shared
def test_each_array_of_a_file_is_checked(name: str) -> None:
    """It must be there, of its shape, and finite."""
    learned = made(name)
    names = [array for array in _arrays(learned) if array.startswith(STATE)]
    assert names
    for array in names:
        for change in (
            replaced(array, lambda held: None),
            replaced(array, lambda held: np.resize(held, (*held.shape, 2))),
            replaced(array, lambda held: held.astype(np.float16)),
            *([put(array, ..., np.nan)] if _arrays(learned)[array].dtype.kind == "f" else []),
            _twice(array),
        ):
            with pytest.raises(ModelFileError, match=r"not a usable model file"):
                from_bytes(forged(learned, change))


def _twice(array: str) -> Change:
    """The same array under another name too."""
    return lambda facts, arrays: arrays.update({f"{array}x": arrays[array]})


def _arrays(learned: Model) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    forged(learned, lambda facts, arrays: found.update(arrays))
    return found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put(SAMPLES + "y", 0, 4), "a sample of a class that does not exist"),
        (put(SAMPLES + "x", (0, 0), np.inf), "samples that are not made of numbers"),
        (replaced(SAMPLES + "x", lambda x: x[:, :7].copy()), "samples of another shape"),
        (replaced(SAMPLES + "y", lambda y: None), "samples without classes"),
        (replaced(SAMPLES + "y", lambda y: y.astype(np.float32)), "are not numbers"),
        (put(SAMPLES + "y", ..., 0), "does not have an output for each"),
    ],
)
def test_kept_samples_are_checked(change: Any, reason: str) -> None:
    with pytest.raises(ModelFileError, match=reason):
        from_bytes(forged(made("icarl"), change))


def test_a_network_that_the_file_does_not_hold_is_not_made() -> None:
    def widen(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        facts["config"]["net"]["hidden"] = [10**6, 10**6]

    for name in ("naive", "independent", "pnn"):
        with pytest.raises(ModelFileError, match=r"a network of .* weights, of which it holds"):
            from_bytes(forged(made(name), widen))
    with pytest.raises(ModelFileError, match="of the wrong size"):
        from_bytes(forged(made("naive"), lambda facts, arrays: facts["config"]["net"].update(hidden=[30, 31])))


def test_more_labels_than_outputs_are_refused() -> None:
    for name in SHARED:
        with pytest.raises(ModelFileError):
            from_bytes(forged(made(name), lambda facts, arrays: facts["tasks"][-1].append(9)))
        with pytest.raises(ModelFileError):
            from_bytes(forged(made(name), lambda facts, arrays: facts["tasks"].append([9])))


def test_a_mean_without_samples_is_no_answer() -> None:
    """Nothing is made up where a method has no numbers."""
    learned = make("icarl")
    assert isinstance(learned.method, ICaRL)
    learned.method.memory.rows.clear()
    learned.method.memory._samples.clear()
    with pytest.raises((ModelFileError, RuntimeError, DataError, RunError)):
        from_bytes(to_bytes(learned))
