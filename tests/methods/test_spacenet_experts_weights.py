"""Weights of class statistics that are chosen on samples of each task which it was not trained on."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spacenet.config.model import ModelConfig, NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Stream, Task
from spacenet.errors import ModelFileError, SettingsError
from spacenet.methods.density.densities import Densities, scores
from spacenet.methods.density.selection import hold_out
from spacenet.methods.shared.class_statistics import SEED
from spacenet.methods.shared.expert_settings import ExpertSettings
from spacenet.methods.shared.score_weights import OWN_WEIGHTS, STATISTICS_WEIGHTS, ScoreWeights
from spacenet.methods.spacenet_experts import OWN, SUMS, SpaceNetExperts
from spacenet.model.export import FORMATS, export_model
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.inspection import inspect_model
from spacenet.model.model import Model
from spacenet.nets.mlp import build_mlp
from spacenet.report.card import model_card
from tests.methods.support import learn
from tests.methods.test_resuming import assert_same, everything, learn_and_stop, resume
from tests.nets.test_convolutions import images, tiny_cnn
from tests.support import clouds

TRAINING = TrainingConfig(epochs=1, batch_size=16, learning_rate=0.05)
STATISTICS: Mapping[str, object] = {"statistics_weight": "auto", "directions": 3}
OWN_STATISTICS: Mapping[str, object] = {"own_statistics_weight": "auto", "directions": 3}
KINDS = pytest.mark.parametrize(
    "settings",
    [
        STATISTICS,
        OWN_STATISTICS,
        {**STATISTICS, **OWN_STATISTICS},
        {**STATISTICS, "own_statistics_weight": 0.1},
        {**STATISTICS, "pooled_covariance": True},
    ],
    ids=["statistics", "own", "both", "one is given", "pooled"],
)


def stream(per_class: int = 60) -> Stream:
    """Tasks that are large enough to hold out samples."""
    return images(per_class=per_class)


def build(**settings: object) -> SpaceNetExperts:
    return SpaceNetExperts(tiny_cnn(), ExpertSettings(expected_tasks=3, **settings), 0)  # type: ignore[arg-type]


def held_out(method: SpaceNetExperts, task: Task) -> Tensor:
    held = hold_out(task.train.y, task.classes, method.rng("held out", task.index))
    assert held is not None
    return held


def measure_by_hand(method: SpaceNetExperts, before: Densities, task: Task) -> list[list[float]]:
    """The accuracy with each pair of weights when this task was the newest."""
    held, x, y = held_out(method, task), task.train.x, task.train.y
    settings = method.settings
    firsts = STATISTICS_WEIGHTS if settings.statistics_weight == "auto" else (float(settings.statistics_weight),)
    owns = OWN_WEIGHTS if settings.own_statistics_weight == "auto" else (float(settings.own_statistics_weight),)
    score = torch.cat([expert(x[held]) for expert in method.experts], 1).detach()
    fit, typical = torch.zeros_like(score), torch.zeros_like(score)
    if settings.statistics_weight:
        before.add(method.represent(x[~held]), y[~held], task.classes, method.rng(SEED, task.index))
        fit = scores(before.compute_params(), method.represent(x[held]))
    if settings.own_statistics_weight:
        features = [method._represent_own(expert.params, x[held]) for expert in method.experts]
        typical = method.score_own(method.own_params(), features).to(score.dtype)
        newest = method._own_densities()
        h = method._represent_own(method.experts[-1].params, x)
        newest.add(h[~held], y[~held], task.classes, method.rng(OWN, task.index))
        typical[:, task.classes.start :] = newest.evaluate(h[held])
    return [
        [float(((score + own * typical + first * fit).argmax(1) == y[held]).double().mean()) for own in owns]
        for first in firsts
    ]


@KINDS
@torch.no_grad()
def test_weights_are_those_with_the_largest_accuracy_on_held_out_samples(settings: Mapping[str, object]) -> None:
    method, sums = build(**settings), np.zeros(())
    for task in stream():
        before = copy.deepcopy(method.densities)
        with torch.enable_grad():
            learn(method, [task], TRAINING)
        if task.index:
            sums = sums + np.array(measure_by_hand(method, before, task))
            np.testing.assert_allclose(method.accuracy_sums.numpy(), sums, rtol=0, atol=1e-9)
            assert method.weights == method.candidates.choose(torch.from_numpy(sums))
            assert len(method.accuracy_sums.unique()) > 1
        else:
            assert method.accuracy_sums.numel() == 0
    x = stream()[0].test.x
    parts = method.score_parts(x)
    expected = method.weights.add_up(parts[0], *method._log_densities(*parts[1:]))
    torch.testing.assert_close(method.predict(x), expected)
    torch.testing.assert_close(method.predict_truncated(x, [3])[0], expected)


@pytest.mark.parametrize("settings", [STATISTICS, {**STATISTICS, **OWN_STATISTICS}])
def test_held_out_samples_are_not_trained_on_but_described(settings: Mapping[str, object]) -> None:
    """Other pixels in them change the statistics of their classes, and nothing that was trained."""
    first, second = stream()[:2]
    method, spoiled = build(**settings), build(**settings)
    learn(method, [first, second], TRAINING)
    held = held_out(method, second)
    x = second.train.x.clone()
    x[held] = x[held].flip(0) * 1.5
    learn(spoiled, [first, replace_train(second, x)], TRAINING)
    for link in method.blueprint.links:
        assert torch.equal(*(each.ledger.connections[link.name].value for each in (method, spoiled)))
    assert all(torch.equal(tensor, spoiled.heads[1][name]) for name, tensor in method.heads[1].items())
    assert method.densities.classes is not None
    assert spoiled.densities.classes is not None
    assert torch.equal(method.densities.classes.mean[:2], spoiled.densities.classes.mean[:2])
    assert not torch.equal(method.densities.classes.mean[2:], spoiled.densities.classes.mean[2:])
    assert [len(method.training_data(task)) for task in (first, second)] == [120, 96]


def replace_train(task: Task, x: Tensor) -> Task:
    changed = copy.copy(task)
    changed.__dict__["train"] = replace(task.train, x=x)
    return changed


def test_statistics_are_the_same_as_with_a_given_weight_on_the_same_network() -> None:
    """Those of a small task, of which nothing is held out, and so all others."""
    x = images()[0].test.x
    chosen, given = build(**STATISTICS), build(**{**STATISTICS, "statistics_weight": 0.15})
    for method in (chosen, given):
        learn(method, images(), TRAINING)
    assert chosen.accuracy_sums.numel() == 0
    assert chosen.state().keys() == given.state().keys()
    assert torch.equal(chosen.predict(x), given.predict(x))


def test_a_task_that_is_too_small_changes_nothing() -> None:
    method = build(**STATISTICS)
    learn(method, stream()[:2], TRAINING)
    before = method.accuracy_sums.clone()
    learn(method, [images()[2]], TRAINING)
    assert torch.equal(method.accuracy_sums, before)


def test_given_weights_hold_out_nothing() -> None:
    method = build(statistics_weight=0.15, own_statistics_weight=0.1, directions=3)
    learn(method, stream()[:2], TRAINING)
    assert SUMS not in method.state()
    assert len(method.training_data(stream()[1])) == 120
    assert method.weights == ScoreWeights(0.15, 0.1)


def test_a_weight_of_zero_leaves_statistics_out_of_predictions() -> None:
    method = build(**STATISTICS)
    learn(method, stream()[:2], TRAINING)
    method.accuracy_sums = torch.zeros_like(method.accuracy_sums)
    method.invalidate()
    x = stream()[0].test.x
    assert torch.equal(method.predict(x), torch.cat([expert(x) for expert in method.experts], 1))
    assert not any(name.startswith("density") for name in method.predictor.params)


def test_a_table_chooses_too() -> None:
    data = Stream("clouds", clouds(per_class=60), ((0, 1), (2, 3), (4, 5)))
    method = SpaceNetExperts(build_mlp((8,), (30, 30)), ExpertSettings(expected_tasks=3, **STATISTICS), 0)  # type: ignore[arg-type]
    learn(method, data, TRAINING)
    assert float(method.accuracy_sums.max()) > 1


def test_a_task_that_is_resumed_chooses_the_same() -> None:
    data, settings = stream(), {**STATISTICS, **OWN_STATISTICS}
    training, x = replace(TRAINING, epochs=2), data[0].test.x
    whole, again = build(**settings), build(**settings)
    learn(whole, data[:1], training)
    stopped = learn_and_stop(whole, data, training, (1,))[1]
    resume(again, data, training, stopped, 1)
    assert_same(everything(whole, x), everything(again, x), 1)
    for method in (whole, again):
        learn(method, [data[2]], training)
    assert_same(everything(whole, x), everything(again, x), 2)


# Model files


@cache
def learned(kind: str) -> Model:
    """A model that has learned three tasks."""
    settings = {"statistics": STATISTICS, "own": OWN_STATISTICS, "both": {**STATISTICS, **OWN_STATISTICS}}[kind]
    chosen = ExpertSettings(expected_tasks=4, expand="auto", **settings)  # type: ignore[arg-type]
    net = NetConfig("small-cnn", hidden=(4, 4, 8))
    model = Model(ModelConfig("spacenet-experts", net, TRAINING, method_settings=chosen), (3, 8, 8))
    for task in range(3):
        model.learn(*task_of(task))
    return model


def task_of(number: int, per_class: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(number)
    y = np.repeat([0, 1], per_class)
    x = 2 * rng.normal(size=(2, 3, 8, 8))[y] + rng.normal(size=(len(y), 3, 8, 8))
    return x.astype(np.float32), np.array([f"{number}{each}" for each in y])


def experts_of(model: Model) -> SpaceNetExperts:
    assert isinstance(model.method, SpaceNetExperts)
    return model.method


@pytest.mark.parametrize("kind", ["statistics", "own", "both"])
def test_a_model_file_holds_the_choice_and_learns_on(kind: str, tmp_path: Path) -> None:
    model, x = copy.deepcopy(learned(kind)), task_of(1)[0]
    again = from_bytes(to_bytes(model))
    assert torch.equal(experts_of(model).accuracy_sums, experts_of(again).accuracy_sums)
    assert torch.equal(model.scores(x), again.scores(x))
    assert to_bytes(again) == to_bytes(model)
    before = experts_of(model).accuracy_sums
    for each in (model, again):
        each.learn(*task_of(3))
    assert to_bytes(again) == to_bytes(model)
    assert torch.equal(model.scores(x), again.scores(x))
    assert bool((experts_of(again).accuracy_sums >= before).all())
    assert not torch.equal(experts_of(again).accuracy_sums, before)
    again.undo()
    assert torch.equal(experts_of(again).accuracy_sums, before)


@pytest.mark.parametrize("kind", ["statistics", "both"])
def test_forgetting_and_compacting_keep_the_weights(kind: str) -> None:
    model, x = copy.deepcopy(learned(kind)), task_of(0)[0]
    before, weights = model.scores(x), experts_of(model).weights
    model.forget("11")
    assert torch.equal(model.scores(x), before[:, [0, 1, 2, 4, 5]])
    model.forget("10")
    assert torch.equal(model.scores(x), before[:, [0, 1, 4, 5]])
    assert experts_of(model).weights == weights
    model.compact()
    again = from_bytes(to_bytes(model))
    assert torch.equal(model.scores(x), again.scores(x))
    again.learn(*task_of(3))
    assert len(again.classes) == 6
    assert float(experts_of(again).accuracy_sums.max()) <= 3


@pytest.mark.parametrize("kind", ["statistics", "own", "both"])
def test_what_was_chosen_is_shown(kind: str) -> None:
    model, chosen = learned(kind), {}
    if kind != "own":
        chosen["statistics_weight"] = experts_of(model).weights.statistics
    if kind != "statistics":
        chosen["own_statistics_weight"] = experts_of(model).weights.own
    found = inspect_model(model, 0)
    assert found.chosen_settings == chosen
    text = ", ".join(f"{name} {value:g}" for name, value in chosen.items())
    assert f"Chosen settings: {text}" in model_card(found, "model")


@pytest.mark.parametrize(("weight", "to"), [(0, "torch"), (5, "torch"), (5, "onnx")])
def test_exported_models_use_the_chosen_weights(weight: int, to: str, tmp_path: Path) -> None:
    for library in ("onnx", "onnxscript", "onnxruntime") if to == "onnx" else ():
        pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
    model = copy.deepcopy(learned("statistics"))
    method, x = experts_of(model), 0.1 * task_of(1)[0][:20]
    before = model.scores(x)
    method.accuracy_sums = torch.zeros_like(method.accuracy_sums)
    method.accuracy_sums[weight] = 1.0
    method.invalidate()
    assert not torch.equal(model.scores(x), before)
    export_model(model, tmp_path / "model", to)
    answer, _ = FORMATS[to].load(tmp_path / "model")
    np.testing.assert_allclose(answer(x)["probabilities"], model.predict_proba(x), atol=1e-4)


def spoil(sums: Tensor) -> Sequence[Tensor]:
    wrong = torch.cat([sums, sums]), sums[:, None], sums.float(), sums - 5, sums + 5, sums.long()
    return [*wrong, *(torch.full_like(sums, value) for value in (torch.nan, torch.inf, -torch.inf))]


@pytest.mark.parametrize("number", range(9))
def test_a_file_with_impossible_sums_is_refused(number: int) -> None:
    model = copy.deepcopy(learned("both"))
    method = experts_of(model)
    method.accuracy_sums = spoil(method.accuracy_sums)[number].clone()
    with pytest.raises(ModelFileError):
        from_bytes(to_bytes(model))


def test_a_file_with_sums_and_given_weights_is_refused() -> None:
    model = copy.deepcopy(learned("statistics"))
    given = replace(model.config, method_settings=replace(model.config.method_settings, statistics_weight=0.15))  # type: ignore[call-arg]
    model.config = given
    with pytest.raises(ModelFileError):
        from_bytes(to_bytes(model))


def test_a_choice_cannot_be_given_up_later() -> None:
    model = copy.deepcopy(learned("statistics"))
    other = replace(model.config, method_settings=replace(model.config.method_settings, statistics_weight=0.15))  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match="statistics_weight"):
        model.learn(*task_of(3), config=other)


@pytest.mark.parametrize("name", ["statistics_weight", "own_statistics_weight"])
@pytest.mark.parametrize("value", ["Auto", "0.1", -1.0, float("nan"), 1e7, True])
def test_other_values_are_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=name):
        ExpertSettings(**{name: value})  # type: ignore[arg-type]
