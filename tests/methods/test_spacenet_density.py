"""SpaceNet with class statistics: what it guarantees beyond SpaceNet."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spacenet
from spacenet.data.stream import Samples
from spacenet.errors import SettingsError
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import SEED
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_density import DensitySettings, SpaceNetDensity
from spacenet.nets.mlp import build_mlp
from spacenet.space.blueprint import Blueprint
from spacenet.utils.seeding import generator
from tests.methods.support import accuracy, copy_state, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn, tiny_wrn

MLP: dict[str, Any] = {"selected": (10,), "reserved": (5,), "connections": (40, 40, 8), "directions": 3}
CNN: dict[str, Any] = {"selected": (0,), "reserved": (1, 1, 2, 2, 4), "connections": (0.1,), "directions": 3}
WRN: dict[str, Any] = {"selected": (0, 5, 7, 9), "reserved": (0, 1, 2, 3), "connections": (0.05,), "directions": 3}
ONE_EACH = ((0,), (1,), (2,), (3,))


def test_it_learns_and_remembers_also_classes_that_come_alone() -> None:
    for cut in (((0, 1), (2, 3), (4, 5)), ONE_EACH):
        stream = small_stream(cut)
        method = make(SpaceNetDensity, MLP)
        learn(method, stream)
        assert min(accuracy(method, stream)) > 0.9
    alone = make(SpaceNet, {key: value for key, value in MLP.items() if key != "directions"})
    learn(alone, small_stream(ONE_EACH))
    assert min(accuracy(alone, small_stream(ONE_EACH))) < 0.5  # no two classes were ever trained together


@pytest.mark.parametrize(("build", "settings"), [(tiny_cnn, CNN), (tiny_wrn, WRN)])
def test_features_are_those_of_the_first_task_for_good(build: Any, settings: dict[str, Any]) -> None:
    """Later tasks change what the network answers, but not what its classes are described on, by a bit."""
    blueprint: Blueprint = build()
    method, stream = SpaceNetDensity(blueprint, DensitySettings(**settings), 0), images(3)
    x, seen, answers = stream[0].test.x, [], []
    for task in stream:
        learn(method, [task], TRAINING)
        with torch.no_grad():
            seen.append(method.represent(x))
            answers.append(method.pack(x)[:, :2])
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])
    assert not torch.equal(answers[0], answers[2])
    assert bool(seen[0].any())


def test_fewer_directions_change_what_densities_say_and_nothing_else() -> None:
    method, stream = make(SpaceNetDensity, MLP), small_stream()
    learn(method, stream)
    x, kept = stream[1].test.x, copy_state(method)
    before = method.predict(x)
    assert torch.equal(method.truncate(3)(x), before)
    thin = method.truncate(0)
    assert not torch.equal(thin(x), before)
    assert {name for name in thin.params if name.startswith("network")}
    assert torch.equal(method.predict(x), before)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in method.state().items())


def test_old_statistics_keep_every_bit() -> None:
    method, stream = make(SpaceNetDensity, MLP), small_stream()
    learn(method, stream[:1])
    before = {name: tensor.clone() for name, tensor in method.extra_state().items()}
    learn(method, [stream[1], stream[2]])  # a slice would count from 0 again
    for name, tensor in before.items():
        now = method.extra_state()[name]
        assert torch.equal(now[: len(tensor)] if "classes" in name or "tasks" in name else now, tensor), name
    assert len(method.densities) == 6  # type: ignore[attr-defined]


def test_it_trains_exactly_as_spacenet() -> None:
    plain = make(SpaceNet, {key: value for key, value in MLP.items() if key != "directions"})
    method = make(SpaceNetDensity, MLP)
    for each in (plain, method):
        learn(each, small_stream())
    assert all(
        torch.equal(a, b) for a, b in zip(plain.network_state().values(), method.network_state().values(), strict=True)
    )
    assert method.extra_bytes() > plain.extra_bytes() == 0


def test_the_network_may_say_nothing() -> None:
    method = make(SpaceNetDensity, MLP | {"network_weight": 0.0})
    learn(method, small_stream())
    assert not any(name.startswith("network") for name in method.predictor.params)
    assert min(accuracy(method, small_stream())) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sharpness": 0.0}, "sharpness"),
        ({"network_weight": -1.0}, "network_weight"),
        ({"shrinkage": 0.0}, "shrinkage"),
        ({"components": 0}, "components"),
        ({"directions": 0}, "directions"),
        ({"rewire_fraction": 2.0}, "rewire_fraction"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        DensitySettings(**settings)


def test_flat_samples_have_no_edges() -> None:
    method = SpaceNetDensity(build_mlp((8,), (30, 30)), DensitySettings(**MLP, representation="edges"), 0)
    with pytest.raises(SettingsError, match="are not images with edges; try inputs"):
        method.check(small_stream())


def test_a_class_with_a_single_sample_is_no_trouble() -> None:
    stream = small_stream()
    method = make(SpaceNetDensity, MLP)
    learn(method, stream[:1])
    train = stream[1].train
    few = Samples(torch.cat([train.x[:1], train.x[train.y == 3]]), torch.cat([train.y[:1], train.y[train.y == 3]]))
    if int(few.y[0]) == 3:
        few = Samples(torch.cat([train.x[train.y == 2][:1], few.x[1:]]), torch.cat([few.y[:1] - 1, few.y[1:]]))
    method.densities.add(few.x, few.y, stream[1].classes, generator(0, SEED, 1))  # type: ignore[attr-defined]
    assert len(method.densities) == 4  # type: ignore[attr-defined]


def hidden_difference(first: int = 0) -> tuple[Any, Any]:
    """Two classes that only the difference of two columns tells apart. Spherical Gaussians do not see it."""
    rng = np.random.default_rng(first)
    y = np.arange(400) % 2
    x = 1.5 * rng.normal(size=(400, 1)) + 0.1 * rng.normal(size=(400, 2))
    x[:, 0] += y
    return x, y + first


SPHERES: dict[str, Any] = {"components": 1, "shrinkage": 1.0, "epochs": 40, "learning_rate": 0.2, "random_state": 0}


def test_the_weight_of_the_network_is_chosen_in_each_task(tmp_path: Path) -> None:
    x, y = hidden_difference()
    rng = np.random.default_rng(1)
    apart = rng.normal(size=(400, 2)) + 20 * (1 + np.arange(400) % 2)[:, None]  # densities know all about these
    model = spacenet.SpaceNetClassifier(**SPHERES).partial_fit(x, y).partial_fit(apart, 2 + np.arange(400) % 2)
    method: Any = model.model_.method
    assert method.weights[0] > 0
    assert method.weights[1] == 0
    assert (model.predict(x) == y).mean() > 0.9
    without = spacenet.SpaceNetClassifier(**SPHERES, network_weight=0.0).fit(x, y)
    assert (without.predict(x) == y).mean() < 0.7
    model.save(tmp_path / "model")
    same, rows = spacenet.load(tmp_path / "model"), np.concatenate([x, apart])
    np.testing.assert_array_equal(same.predict_proba(rows), model.predict_proba(rows))
    for wrong in (method.weights[:1], method.weights - 1, method.weights * 1e9, method.weights.double()):
        with pytest.raises(ValueError, match="weights"):
            method.check_state(method.extra_state() | {"weights": wrong}, (2,))


def test_with_a_given_weight_nothing_is_held_out() -> None:
    fixed = make(SpaceNetDensity, MLP | {"network_weight": 0.25})
    fixed.check(small_stream())
    assert len(fixed.training_data(small_stream()[0])) == len(small_stream()[0].train)
    learn(fixed, small_stream())
    assert "weights" not in fixed.state()


def test_statistics_of_very_large_tasks_come_from_some_of_their_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = hidden_difference()
    monkeypatch.setattr(class_statistics, "MAX_BYTES", 1000)
    model = spacenet.SpaceNetClassifier(**SPHERES).fit(x, y)
    rows = class_statistics.described_rows(Samples(torch.zeros(400, 2), torch.from_numpy(y)), range(2))
    assert isinstance(rows, torch.Tensor)
    assert torch.from_numpy(y)[rows].bincount().tolist() == [50, 50]
    assert (model.predict(x) == y).mean() > 0.5
