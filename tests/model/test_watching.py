"""What is counted of predictions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet.errors import DataError, SettingsError
from spacenet.model.evaluation import evaluate_model
from spacenet.model.watching import LEAST, WINDOW, Watch, allowed_excess, load_watch, save_watch, watch_path
from tests.model.support import blobs, density_model

RNG = np.random.default_rng(0)


def watched(*batches: tuple[str, np.ndarray], **settings: Any) -> Watch:
    watch = Watch(["cat", "dog"], **settings)
    for label, typicality in batches:
        watch.update([label] * len(typicality), typicality)
    return watch


def test_usual_samples_are_no_drift_and_less_typical_ones_are() -> None:
    usual = watched(("cat", RNG.uniform(size=2000)), ("dog", RNG.uniform(size=2000) ** 3)).summary()
    cat, dog = usual.classes
    assert (cat.drifted, dog.drifted, usual.drifted) == (False, True, ["dog"])
    assert cat.typicality == pytest.approx(0.5, abs=0.05)
    assert cat.excess is not None
    assert dog.excess is not None
    assert cat.excess < 10 < dog.excess == pytest.approx(38.5, abs=6)  # u^(1/3) - u at its largest
    assert usual.unknown == round((usual.unknown_rate or 0) * usual.samples / 100)


def test_more_typical_samples_are_no_drift() -> None:
    assert watched(("cat", RNG.uniform(size=500) ** 0.2)).summary().drifted == []


def test_chance_alone_is_hardly_ever_called_drift() -> None:
    looks = [watched(("cat", RNG.uniform(size=size))).summary().drifted for size in (30, 60, 200) for _ in range(200)]
    assert looks.count(["cat"]) <= 3
    assert allowed_excess(LEAST - 1) == np.inf


def test_what_changes_later_is_found_among_recent_samples() -> None:
    watch = watched(*[("cat", RNG.uniform(size=100)) for _ in range(50)])
    assert watch.summary().drifted == []
    for _ in range(8):
        watch.update(["cat"] * 100, RNG.uniform(0, 0.3, size=100))
    found = watch.summary().classes[0]
    assert found.drifted
    assert found.samples == 5800
    assert found.recent <= WINDOW + 100


def test_unknown_samples_may_have_a_label_that_is_no_class() -> None:
    watch = Watch(["cat", 1], rate=0.1)
    watch.update(["cat", None, "unknown", 1], np.array([0.5, 0.01, np.nan, 0.05]))
    found = watch.summary()
    assert (found.samples, found.unknown, found.unknown_rate) == (4, 3, 75.0)
    assert [(each.samples, each.unknown) for each in found.classes] == [(1, 0.0), (1, 100.0)]
    assert Watch(["cat"]).summary().unknown_rate is None
    with pytest.raises(DataError, match="2 labels and 1 figures"):
        watch.update(["cat", 1], np.zeros(1))
    with pytest.raises(SettingsError, match="between 0 and 1"):
        Watch(["cat"], rate=2)


@given(st.lists(st.tuples(st.sampled_from(["cat", "dog", None]), st.floats(0, 1)), max_size=60), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_batches_do_not_matter_and_counts_survive_a_file(each: list[tuple[str | None, float]], size: int) -> None:
    whole, parts = Watch(["cat", "dog"], window=None), Watch(["cat", "dog"], window=None)
    whole.update([label for label, _ in each], np.array([value for _, value in each]))
    for first in range(0, len(each), size):
        own = each[first : first + size]
        parts.update([label for label, _ in own], np.array([value for _, value in own]))
    assert whole.to_plain() == parts.to_plain()
    again = Watch.from_plain(json.loads(json.dumps(whole.to_plain())))
    assert again.summary() == whole.summary()
    assert whole.summary().samples == len(each)


def test_classes_that_come_and_go() -> None:
    watch = watched(("cat", RNG.uniform(size=100)), ("dog", RNG.uniform(size=50)))
    before = watch.summary()
    watch.extend(["bird", "dog", "cat"])
    after = watch.summary()
    assert [each.samples for each in after.classes] == [0, 50, 100]
    assert after.classes[2] == before.classes[0]
    watch.extend(["bird"])
    assert watch.summary().samples == 0


def test_counts_are_kept_beside_the_model(tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    assert load_watch(model) is None
    watch = watched(("cat", RNG.uniform(size=100)))
    save_watch(model, watch)
    kept = load_watch(model)
    assert kept is not None
    assert kept.summary() == watch.summary()
    assert watch_path(model).name == "m.safetensors.watch.json"


@pytest.mark.parametrize(
    "change",
    [
        {"labels": "cat"},
        {"labels": ["cat"]},
        {"rate": 2.0},
        {"rate": "a"},
        {"window": 0},
        {"seen": [1.5, 0]},
        {"seen": [-1, 0]},
        {"seen": [2**70, 0]},
        {"bins": [[1]]},
        {"bins": None},
        {"others": [True, 0]},
    ],
)
def test_forged_counts_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    model = tmp_path / "m.safetensors"
    for text in (json.dumps(Watch(["cat", "dog"]).to_plain() | change), "[]", "{", "[" * 100_000):
        watch_path(model).write_text(text)
        with pytest.raises(DataError, match="remove it to count anew"):
            load_watch(model)


def test_an_evaluation_says_how_typical_samples_are() -> None:
    model = density_model("inputs", [0, 1], [2, 3])
    x, y = blobs([0, 1, 2, 3, 7], per_class=40)
    found = evaluate_model(model, np.concatenate([x, np.full((1, 8), 1e30, np.float32)]), np.append(y, 7), unknown=0.05)
    assert found.watch is not None
    assert found.detection is not None
    assert found.watch.samples == 201
    assert found.watch.unknown >= 41 * (found.detection.found or 0) / 100
    assert found.to_plain()["watch"]["classes"][0]["label"] == "0"
    assert evaluate_model(model, x, y).watch is None
