from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.model import ModelConfig, NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import ModelFileError, SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.density.densities import Densities
from spacenet.methods.shared.expert_settings import ExpertSettings
from spacenet.methods.shared.rotations import rotate_batch
from spacenet.methods.shared.sparse import FEATURES
from spacenet.methods.spacenet_experts import SpaceNetExperts
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from spacenet.nets.mlp import build_mlp
from tests.methods.support import learn, make, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

STATISTICS = {"statistics_weight": 0.1, "directions": 3, "expected_tasks": 3}
OWN = {"own_statistics_weight": 0.1, "directions": 3, "expected_tasks": 3}


def experts(stop: int = 3, **settings: object) -> SpaceNetExperts:
    """What has learned the first tasks of small images."""
    method = SpaceNetExperts(tiny_cnn(), ExpertSettings(expected_tasks=3, **settings), 0)  # type: ignore[arg-type]
    learn(method, images()[:stop], TRAINING)
    return method


@pytest.mark.parametrize("weight", [0.0, 0.1])
@pytest.mark.parametrize("reads", ["own", "all"])
def test_later_tasks_do_not_change_a_bit_of_earlier_ones(reads: str, weight: float) -> None:
    x = images()[0].test.x
    before, after = (experts(stop, reads=reads, own_statistics_weight=weight).predict(x) for stop in (1, 3))
    assert torch.equal(before, after[:, : before.shape[1]])


def test_experts_share_no_units_and_have_all_connections_between_their_own() -> None:
    method = experts()
    for link in method.blueprint.links:
        held = method.ledger.connections[link.name]
        for task in range(3):
            own = held[held.owner == task]
            assert len(own) == len(own.source.unique()) * len(own.target.unique())
            if link.source != method.blueprint.input.name:
                assert bool((method.ledger.state[link.source][own.source.long()] == task).all())


def test_an_expert_that_reads_all_has_all_connections_from_earlier_units_too() -> None:
    method = experts(reads="all")
    for link in method.blueprint.links:
        held = method.ledger.connections[link.name]
        for task in range(3):
            own = held[held.owner == task]
            assert len(own) == len(own.source.unique()) * len(own.target.unique())
            if link.target != method.blueprint.output.name:
                assert bool((method.ledger.state[link.target][own.target.long()] == task).all())
            if link.source != method.blueprint.input.name:
                owners = method.ledger.state[link.source][own.source.long()].unique()
                assert owners.tolist() == list(range(task + 1))


@pytest.mark.parametrize("reads", ["own", "all"])
def test_the_workspace_and_a_masked_dense_network_learn_the_same(reads: str) -> None:
    """In an MLP, where what frozen units compute is computed once for all epochs."""
    found = []
    for masked in (False, True):
        method = make(SpaceNetExperts, {"reads": reads, "expected_tasks": 3, "masked_dense": masked})
        learn(method, small_stream())
        found.append(method.predict(small_stream()[0].test.x))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_a_class_is_scored_by_the_mean_over_four_orientations() -> None:
    method, x = experts(2), images()[1].test.x
    head, network = method.heads[1], method.experts[1]
    assert method.predict(x).shape[1] == 4
    found: list[Tensor] = []
    for turn in range(4):
        entering: dict[str, Tensor] = {}
        plain = {name.removeprefix("network/"): t for name, t in network.params.items()}
        upright = method.blueprint.forward(plain, x.rot90(turn, (-2, -1)), entering.__setitem__)
        features = method.blueprint.features(entering)
        rows = slice(2 * turn - 2, 2 * turn)
        weight = head[f"weight/{method.blueprint.classifiers[0].name}"].flatten(1)[rows]
        found.append(upright if turn == 0 else F.linear(features, weight, head["bias"][rows]))
    torch.testing.assert_close(method.predict(x)[:, 2:], torch.stack(found).mean(0))


def test_what_predicts_is_what_was_trained() -> None:
    method = SpaceNetExperts(tiny_cnn(), ExpertSettings(expected_tasks=3), 0)
    seen: dict[str, Tensor] = {}
    task, x = images()[0], images()[0].train.x[:6]
    plain_end = SpaceNetExperts.end_task

    def end_task(method: SpaceNetExperts, task: object) -> None:
        entering: dict[str, Tensor] = {}
        upright = method.active_workspace()(rotate_batch(x), {}, training=False, hook=entering.__setitem__)
        assert method.rotated_head is not None
        rotated = method.rotated_head(method.blueprint.features(entering))
        output = torch.cat([upright, rotated], 1).detach().view(4, len(x), 4, 2)
        seen["scores"] = torch.stack([output[turn, :, turn] for turn in range(4)]).mean(0)
        plain_end(method, task)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpaceNetExperts, "end_task", end_task)
        learn(method, [task], TRAINING)
    torch.testing.assert_close(method.predict(x), seen["scores"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reads", ["own", "all"])
@pytest.mark.parametrize("limit", [3000, 10**9])
def test_the_weights_of_all_tasks_stay_within_the_limit(limit: int, reads: str) -> None:
    method = experts(max_weights=limit, reads=reads)
    hidden = [link for link in method.blueprint.links if link not in method.blueprint.classifiers]
    weights = sum(method.ledger.connections[link.name].value.numel() for link in hidden)
    assert weights <= limit
    assert method.space_left(2) == 0 or limit < 10**9


def test_an_expert_has_at_least_one_unit_of_each_layer() -> None:
    method = experts(max_weights=1)
    assert set(method.task_budget.selected) == {1}
    assert all(int(method.ledger.used(layer.name).sum()) == 3 for layer in method.blueprint.hidden)


def test_statistics_are_computed_on_the_input_of_the_last_convolution_but_one() -> None:
    method, x = experts(1, statistics_weight=0.1), images()[0].test.x
    found: dict[str, Tensor] = {}
    params = {name.removeprefix("network/"): t for name, t in method.experts[0].params.items()}
    method.blueprint.forward(params, x, found.__setitem__)
    convolutions = [link.name for link in method.blueprint.links if link.stride]
    expected = F.adaptive_avg_pool2d(found[convolutions[-2]], 2).flatten(1).clamp_min(0).sqrt()
    torch.testing.assert_close(method.represent(x), expected)


@pytest.mark.parametrize("mirror", [False, True])
def test_own_statistics_are_those_of_each_experts_last_features(mirror: bool) -> None:
    method, plain = (experts(2, own_statistics_weight=weight, directions=3, mirror=mirror) for weight in (0.1, 0.0))
    task, x, found = images()[1], images()[1].test.x, []

    def features(x: Tensor) -> Tensor:
        entering: dict[str, Tensor] = {}
        params = {name.removeprefix("network/"): t for name, t in plain.experts[1].params.items()}
        plain.blueprint.forward(params, x, entering.__setitem__)
        return plain.blueprint.features(entering).clamp_min(0).sqrt()

    densities = Densities(1, 3, 0.7, whiten=True)
    for samples in (task.train.x, x):
        views = [samples, samples.flip(-1)] if mirror else [samples]
        found.append(torch.stack([features(view) for view in views]).mean(0))
    densities.add(found[0], task.train.y, task.classes, torch.Generator())
    expected = plain.predict(x)[:, 2:] + 0.1 * densities.evaluate(found[1])
    torch.testing.assert_close(method.predict(x)[:, 2:], expected.float(), rtol=1e-4, atol=1e-4)


def test_without_convolutions_own_statistics_are_computed_in_four_orientations() -> None:
    method = SpaceNetExperts(build_mlp((3, 8, 8), (30, 30)), ExpertSettings(**OWN), 0)  # type: ignore[arg-type]
    learn(method, images(), TRAINING)
    widths = [expert.units["hidden2"].numel() for expert in method.experts]
    assert [own["classes/mean"].shape[-1] for own in method.own] == [4 * width for width in widths]
    task = images()[2]
    assert float((method.predict_all(task.test.x).argmax(1) == task.test.y).float().mean()) > 0.6


def test_scores_of_huge_inputs_are_finite() -> None:
    method = experts(2, own_statistics_weight=0.1)
    assert bool(method.predict(torch.full((2, *images()[0].test.x.shape[1:]), 1e15)).isfinite().all())


def test_memory_of_statistics_is_counted() -> None:
    one, own, both = (
        experts(2, **weights).class_memory((3, 8, 8))
        for weights in (
            {"statistics_weight": 0.1},
            {"own_statistics_weight": 0.1},
            {"statistics_weight": 0.1, "own_statistics_weight": 0.1},
        )
    )
    assert one is not None
    assert own is not None
    assert both is not None
    assert (both.bytes, both.floats) == (one.bytes + own.bytes, one.floats + own.floats)
    assert own.bytes > 4 * 4 * own.floats  # of four classes, and the scale of two tasks


@pytest.mark.parametrize("own", [0.0, 0.1])
def test_fewer_directions_change_what_statistics_say_and_nothing_else(own: float) -> None:
    method = experts(2, statistics_weight=0.1 - own, own_statistics_weight=own, directions=3)
    x = images()[0].test.x
    least, thin, whole = method.predict_truncated(x, [0, 1, 3])
    torch.testing.assert_close(whole, method.predict(x))
    torch.testing.assert_close(thin, method.truncate(1)(x))
    torch.testing.assert_close(least, method.truncate(0)(x))
    assert not torch.allclose(thin, whole)
    assert not any(torch.allclose(least, each) for each in (thin, whole))


def test_mirrored_features_are_those_of_an_image_and_its_mirror_image() -> None:
    x = images()[0].test.x
    plain, mirrored = (experts(1, statistics_weight=0.1, mirror=mirror) for mirror in (False, True))
    torch.testing.assert_close(mirrored.represent(x), (plain.represent(x) + plain.represent(x.flip(-1))) / 2)
    torch.testing.assert_close(mirrored.represent(x), mirrored.represent(x.flip(-1)))
    assert not torch.allclose(plain.represent(x), plain.represent(x.flip(-1)))


def test_samples_that_are_no_images_are_learned_upright() -> None:
    method = make(SpaceNetExperts, STATISTICS)
    assert isinstance(method, SpaceNetExperts)
    learn(method, small_stream())
    assert method.heads == [{}, {}, {}]
    task = small_stream()[2]
    assert float((method.predict_all(task.test.x).argmax(1) == task.test.y).float().mean()) > 0.6


def test_the_contrastive_loss_is_added() -> None:
    method = SpaceNetExperts(tiny_cnn(), ExpertSettings(expected_tasks=3, contrast=2.0), 0)
    task = images()[0]
    method.begin_task(task, task.train)
    batch = Batch.pick(task.train, torch.arange(6))
    output = method.forward(batch)
    plain, contrast = F.cross_entropy(output, method.target(batch)), method.loss(output, batch)
    assert batch.saved[FEATURES].shape[0] == 24
    assert float(contrast.detach()) > float(plain.detach())
    assert any(name.startswith("projection") for name in method.named_parameters())


@pytest.mark.parametrize("settings", [{}, {"rotations": "none"}, STATISTICS, OWN, {**OWN, **STATISTICS}])
def test_a_model_file_holds_it(settings: Mapping[str, object], tmp_path: Path) -> None:
    model = learned_model(settings)
    again = from_bytes(to_bytes(model))
    x = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0)).numpy()
    assert torch.equal(model.scores(x), again.scores(x))
    assert to_bytes(again) == to_bytes(model)


def test_a_damaged_model_file_is_refused() -> None:
    model = learned_model(STATISTICS)
    assert isinstance(model.method, SpaceNetExperts)
    name = next(name for name in model.method.heads[0] if name.startswith("units/"))
    for damage in (1e6, -1.0, 0.5, float("nan")):
        kept = model.method.heads[0][name].clone()
        model.method.heads[0][name][0] = damage
        with pytest.raises(ModelFileError):
            from_bytes(to_bytes(model))
        model.method.heads[0][name] = kept
    del model.method.heads[1]["bias"]
    with pytest.raises(ModelFileError):
        from_bytes(to_bytes(model))


@pytest.mark.parametrize("name", ["scaling/factor", "classes/mean", "classes/direction"])
def test_a_file_with_damaged_own_statistics_is_refused(name: str) -> None:
    model = learned_model(OWN)
    assert isinstance(model.method, SpaceNetExperts)
    kept = model.method.own[1][name]
    for damaged in (kept[..., :-1].clone(), torch.full_like(kept, float("nan"))):
        model.method.own[1][name] = damaged
        with pytest.raises(ModelFileError):
            from_bytes(to_bytes(model))
    del model.method.own[1][name]
    with pytest.raises(ModelFileError):
        from_bytes(to_bytes(model))


def learned_model(settings: Mapping[str, object]) -> Model:
    training = TrainingConfig(epochs=1, batch_size=8, learning_rate=0.05)
    chosen = ExpertSettings(**{"expected_tasks": 2, **settings})  # type: ignore[arg-type]
    net = NetConfig("small-cnn", hidden=(4, 4, 8))
    model = Model(ModelConfig("spacenet-experts", net, training, method_settings=chosen), (3, 8, 8))
    rng = torch.Generator().manual_seed(1)
    for task in range(2):
        x = torch.randn(16, 3, 8, 8, generator=rng).numpy()
        model.learn(x, np.array([f"{task}{row % 2}" for row in range(16)]))
    return model


def test_experts_are_not_balanced() -> None:
    with pytest.raises(SettingsError, match="raw scores"):
        ExpertSettings(balance="weights")
