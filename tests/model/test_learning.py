"""More samples of known classes, weights of samples, and scikit-learn's loop of mini-batches."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine

from spacenet import SpaceNetClassifier
from spacenet.errors import DataError, SettingsError, SpaceFull
from spacenet.methods.density.moments import Moments
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from tests.model.support import blobs, density_model, model

SMALL: dict[str, Any] = {"hidden": (40, 40), "epochs": 3}


def raw_moments(learned: Model) -> dict[Any, tuple[float, np.ndarray, np.ndarray]]:
    """The count, mean and scatter of each class in the coordinates of raw inputs."""
    known, made = learned.method.densities, learned.fitted_normalization  # type: ignore[attr-defined]
    std, mean = made.std.double() / made.scale, made.mean.double() / made.scale
    found = {}
    for label, each in zip(learned.outputs, known.split_moments(), strict=True):
        one: Moments = each.merge()
        scatter = one.covariance(0) * one.count * torch.outer(*2 * [std.expand(len(one.mean[0]))])
        found[label] = float(one.count), (one.mean[0] * std + mean).numpy(), scatter.numpy()
    return found


def test_a_hundred_calls_with_20_samples_each_are_one_call() -> None:
    x, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.random.default_rng(each).permutation(len(x)) for each in (0, 1)])[:2000]
    x, y = x[rows], y[rows]
    first = np.unique(y, return_index=True)[1]  # every class is in the first call: there is one task
    order = np.concatenate([first, np.setdiff1d(np.arange(2000), first)])
    x, y = x[order], y[order]
    many, used = SpaceNetClassifier(**SMALL), []
    for number in range(100):
        part = slice(20 * number, 20 * number + 20)
        many.partial_fit(x[part], y[part], classes=np.unique(y))
        used.append(many.model_.method.ledger.tensors())
    assert len(many.tasks_) == 1
    for name, tensor in used[0].items():
        assert torch.equal(used[-1][name], tensor), name  # space is used once
    one = SpaceNetClassifier(**SMALL).partial_fit(x, y)
    found, right = raw_moments(many.model_), raw_moments(one.model_)
    for label, (count, mean, scatter) in right.items():
        assert found[label][0] == count
        np.testing.assert_allclose(found[label][1], mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found[label][2], scatter, rtol=1e-4, atol=1e-4 * np.abs(scatter).max())
    assert abs(many.score(x, y) - one.score(x, y)) < 0.02


def uncalibrated(classifier: SpaceNetClassifier, x: np.ndarray) -> np.ndarray:
    """Scores before the temperature, which is found on samples that are left out, or not yet in the statistics."""
    model = classifier.model_
    return np.asarray(model.scores(x).numpy() / model.method.calibration.factor)  # type: ignore[attr-defined]


def test_with_one_normalization_answers_are_those_of_one_call() -> None:
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = ((x - x.mean(0)) / x.std(0))[order], y[order]
    fixed: dict[str, Any] = {"mean": 0.0, "std": 1.0, "components": 1, "network_weight": 0.0, **SMALL}
    one, many = SpaceNetClassifier(**fixed).fit(x, y), SpaceNetClassifier(**fixed)
    for part in np.array_split(np.arange(len(x)), 9):
        many.partial_fit(x[part], y[part])
    assert len(many.tasks_) == 1
    np.testing.assert_allclose(uncalibrated(many, x), uncalibrated(one, x), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("kind", ["inputs", "edges", "features"])
def test_a_mixed_call_updates_known_classes_and_learns_new_ones(kind: str) -> None:
    learned = density_model(kind)
    shape = learned.input_shape
    before, space = learned.method.state(), learned.space_left()
    learned.learn(*blobs([1, "cat"][:1], per_class=9, shape=shape))
    assert (learned.tasks, learned.space_left()) == ([(0, 1), ("cat", "dog")], space)
    known = learned.method.densities  # type: ignore[attr-defined]
    assert known.counts.tolist() == [20, 29, 20, 20]
    network = {name: tensor for name, tensor in learned.method.state().items() if name.startswith("network/")}
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.items())
    learned.learn(*blobs(["dog", "emu", "fox"], shape=shape))
    assert learned.tasks == [(0, 1), ("cat", "dog"), ("emu", "fox")]
    assert learned.method.densities.counts.tolist() == [20, 29, 20, 40, 20, 20]  # type: ignore[attr-defined]
    x = blobs([0, 1, "cat", "dog", "emu", "fox"], shape=shape)[0]
    assert np.isfinite(learned.predict_proba(x)).all()
    again = from_bytes(to_bytes(learned))
    np.testing.assert_array_equal(again.predict_proba(x), learned.predict_proba(x))
    np.testing.assert_array_equal(again.typicality(x), learned.typicality(x))
    for each in (learned, again):  # and it goes on to the bit
        each.learn(*blobs([0, 1], shape=shape))
    assert to_bytes(learned) == to_bytes(again)


def test_what_is_typical_stays_so() -> None:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    classifier = SpaceNetClassifier(network_weight=0.0, **SMALL)
    for part in np.array_split(np.arange(1400), 70):
        classifier.partial_fit(x[part], y[part], classes=np.unique(y))
    assert 0.01 < (classifier.score_samples(x[1400:]) < 0.05).mean() < 0.1
    assert (classifier.score_samples(np.random.default_rng(1).uniform(0, 16, (200, 64))) < 0.05).all()


def test_an_update_can_be_undone() -> None:
    learned = density_model("inputs")
    before = to_bytes(learned)
    learned.learn(*blobs([0, 1]))
    assert to_bytes(learned) != before
    learned.undo()
    assert to_bytes(learned) == before


def test_a_call_that_fails_changes_nothing() -> None:
    learned = density_model("inputs", [0, 1], selected=(30,), reserved=(29,))
    before = to_bytes(learned)
    with pytest.raises(SpaceFull):
        learned.learn(*blobs([0, 5, 6]))
    assert to_bytes(learned) == before


def test_without_statistics_the_outputs_of_the_classes_are_trained_and_nothing_else() -> None:
    learned = model([0, 1, 2], [3, 4])
    before, wrong = learned.method.ledger.tensors(), blobs([0, 1])
    x, y = wrong[0], 1 - wrong[1]  # the labels the other way round
    learned.learn(x, y)
    assert learned.tasks == [(0, 1, 2), (3, 4)]
    after, output = learned.method.ledger.tensors(), learned.method.blueprint.output.name
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    link = learned.method.blueprint.classifiers[0].name
    assert changed == {f"links/{link}/value", f"units/{output}.bias"}
    others = after[f"links/{link}/target"] > 1
    assert torch.equal(after[f"links/{link}/value"][others], before[f"links/{link}/value"][others])
    assert torch.equal(after[f"units/{output}.bias"][2:], before[f"units/{output}.bias"][2:])
    for _ in range(10):
        learned.learn(x, y)
    assert (learned.scores(x)[:, :2].argmax(1).numpy() == y).mean() > 0.9


@pytest.mark.parametrize("settings", [{"known_classes": "task"}, {"method": "spacenet-experts"}])
def test_known_classes_may_be_a_task_of_their_own(settings: dict[str, Any]) -> None:
    learned = model([0, 1], [1, 2], **settings)
    assert learned.tasks == [(0, 1), (1, 2)]


def test_of_several_outputs_the_nearest_is_updated() -> None:
    learned = density_model("inputs", [0, 1], [2, 3])
    learned.merge([1, 2], into=1)
    learned.learn(blobs([2])[0], np.full(20, 1))  # what was class 2 is called 1 now
    assert learned.method.densities.counts.tolist() == [20, 20, 40, 20]  # type: ignore[attr-defined]


# Weights


def test_weights_of_samples() -> None:
    x, y = load_wine(return_X_y=True)
    weight = np.arange(len(x)) % 4
    fixed: dict[str, Any] = {"mean": 0.0, "std": 100.0, "components": 1, "network_weight": 0.0, **SMALL}
    weighted = SpaceNetClassifier(**fixed).fit(x, y, sample_weight=weight)
    repeated = SpaceNetClassifier(**fixed).fit(np.repeat(x, weight, axis=0), np.repeat(y, weight))
    found, right = raw_moments(weighted.model_), raw_moments(repeated.model_)
    for label, (count, mean, scatter) in right.items():
        assert found[label][0] == count
        np.testing.assert_allclose(found[label][1], mean, rtol=1e-6)
        np.testing.assert_allclose(found[label][2], scatter, rtol=1e-6, atol=1e-6 * np.abs(scatter).max())
    np.testing.assert_allclose(uncalibrated(weighted, x), uncalibrated(repeated, x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["spacenet-density", "spacenet", "spacenet-experts"])
def test_a_weight_of_0_leaves_a_sample_out_to_the_bit(method: str) -> None:
    x, y = blobs([0, 1, 2])
    weight = np.where(np.arange(len(x)) % 3, 1.0, 0.0)
    kept = weight > 0
    one = SpaceNetClassifier(method=method, **SMALL).fit(x, y, sample_weight=weight)
    other = SpaceNetClassifier(method=method, **SMALL).fit(x[kept], y[kept])
    assert to_bytes(one.model_) == to_bytes(other.model_)


def test_the_network_follows_weights() -> None:
    """Two labels for the same inputs: the heavier one wins."""
    x = np.concatenate([blobs([0, 1])[0]] * 2)
    y = np.repeat([0, 1], 40)
    found = []
    for heavy in (0, 1):
        weight = np.where(y == heavy, 1.0, 0.1)
        one = SpaceNetClassifier(method="spacenet", hidden=(40, 40), epochs=30).fit(x, y, sample_weight=weight)
        found.append((one.predict(x) == heavy).mean())
    assert min(found) > 0.95


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        (np.ones(5), "one weight per sample"),
        (np.full(20, -1.0), "at least 0"),
        (np.full(20, np.nan), "finite"),
        (np.zeros(20), "all samples have the weight 0"),
    ],
)
def test_weights_that_cannot_be(weight: np.ndarray, reason: str) -> None:
    x, y = blobs([0])
    with pytest.raises(DataError, match=reason):
        model().learn(x, y, sample_weight=weight)


# Declared classes


def test_labels_that_were_not_declared_are_an_error() -> None:
    classifier = SpaceNetClassifier(**SMALL).partial_fit(*blobs([0, 1]), classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not in classes="):
        classifier.partial_fit(*blobs([1, 3]))
    with pytest.raises(ValueError, match="not the same as in the first call"):
        classifier.partial_fit(*blobs([1, 2]), classes=[0, 1])
    classifier.partial_fit(*blobs([2]), classes=[2, 1, 0])
    assert classifier.tasks_ == [(0, 1), (2,)]
    with pytest.raises(ValueError, match="not in classes="):
        SpaceNetClassifier(**SMALL).partial_fit(*blobs([0, 5]), classes=[0, 1])


def test_declared_classes_have_room_one_by_one() -> None:
    classes, classifier = list(range(14)), SpaceNetClassifier(**SMALL)
    for label in classes:
        classifier.partial_fit(*blobs([label], per_class=5), classes=classes)
    assert len(classifier.tasks_) == 14
    assert classifier.model_.config.method_settings.expected_tasks == 14  # type: ignore[attr-defined]


def test_what_decides_whether_updates_are_exact_cannot_change() -> None:
    classifier = SpaceNetClassifier(**SMALL).fit(*blobs([0, 1])).set_params(exact_updates=False)
    with pytest.raises(SettingsError, match="exact_updates"):
        classifier.partial_fit(*blobs([0]))
