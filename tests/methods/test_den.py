import pytest
import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.methods.den import DEN, Phase, find_units, shrink_groups
from spacenet.nets.mlp import build_mlp
from spacenet.utils.optimizers import SGD
from tests.methods.support import learn, make, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

CAREFUL = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.1, momentum=0.5, weight_decay=0.01)
TASKS = list(small_stream())


def den(tasks: int = 1, **settings: object) -> DEN:
    method = make(DEN, settings, hidden=(12, 10))
    assert isinstance(method, DEN)
    learn(method, TASKS[:tasks], CAREFUL)
    return method


def begun(**settings: object) -> DEN:
    """One task is learned, the second has begun."""
    method = den(1, **settings)
    method.begin_task(TASKS[1], TASKS[1].train)
    return method


def scores(method: DEN, task: int) -> Tensor:
    with torch.no_grad():
        return method.scores(TASKS[0].test.x, task)


def copies(method: DEN) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in method.params.items()}


def widths(method: DEN) -> dict[str, list[int]]:
    return {name: each.tolist() for name, each in method.widths.items()}


def test_a_group_shrinks_by_the_threshold_or_vanishes() -> None:
    parts = [torch.tensor([[3.0], [0.3]]), torch.tensor([[4.0], [0.4]])]
    shrink_groups(parts, 1.0)  # norms 5 and 0.5
    torch.testing.assert_close(parts[0], torch.tensor([[2.4], [0.0]]))
    torch.testing.assert_close(parts[1], torch.tensor([[3.2], [0.0]]))


def test_units_are_found_along_weights_that_are_not_zero() -> None:
    values = {
        "input-hidden1": torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]),
        "hidden1-hidden2": torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        "hidden2-output": torch.tensor([[0.0, 1.0], [0.5, 0.0]]),
    }
    found = find_units(build_mlp((2,), (3, 2)), values, torch.tensor([False, True]))
    assert found["hidden2"].tolist() == [True, False]
    assert found["hidden1"].tolist() == [False, True, False]
    assert found["input"].tolist() == [False, True]


def test_a_step_takes_the_penalties_into_account() -> None:
    method = begun(sparsity=0.5, decay=0.25, drift_penalty=2.0)
    name = "hidden1-hidden2"

    def stepped(phase: Phase, at: float, old: float = 0.0) -> float:
        method.phase = phase
        method.old[name].fill_(old)
        for value in method.parameters():
            value.data.fill_(at)
            value.grad = torch.zeros_like(value)
        method.step(SGD(method.parameters(), 0.1))
        return float(method.params[name].detach()[0, 0])

    assert stepped(Phase.FIRST, 0.3) == pytest.approx(0.3 - 0.1 * 0.5)
    assert stepped(Phase.SELECT, -0.3) == pytest.approx(-0.3 + 0.1 * 0.5)
    assert stepped(Phase.FIRST, 0.04) == 0.0
    assert stepped(Phase.RETRAIN, 1.0) == pytest.approx(1.0 - 0.1 * 2 * 0.25)
    assert stepped(Phase.SPLIT, 1.0, old=0.5) == pytest.approx(1.0 - 0.1 * 2 * 2.0 * 0.5)


def test_the_first_task_leaves_zeros() -> None:
    assert bool(den(1, sparsity=0.0).params["input-hidden1"].detach().all())
    weight = den(1, sparsity=0.05).params["input-hidden1"].detach()
    assert 0.05 < float((weight == 0).float().mean()) < 0.95


def test_epochs_are_shared_out_among_the_phases() -> None:
    method, reports = make(DEN), []
    for task in TASKS[:2]:
        reports.append(len(learn(method, [task], TrainingConfig(epochs=6, batch_size=10))))
    assert reports == [6, 8]


def test_selection_trains_the_tasks_outputs_alone() -> None:
    method = begun()
    assert method.phase == Phase.SELECT
    trained = {name for name, mask in method.trainable.items() if bool(mask.any())}
    assert trained == {"hidden2-output", "output.bias"}
    assert method.trainable["output.bias"].tolist() == [False, False, True, True]


def test_only_the_subnetwork_is_retrained() -> None:
    method = begun()
    method.params["hidden2-output"].data[2:, 3:] = 0.0
    method.params["hidden1-hidden2"].data[:3, 5:] = 0.0
    method.selected = method.find_relevant_units()
    method.start_phase(Phase.RETRAIN)
    assert method.selected["hidden2"].tolist() == [True] * 3 + [False] * 7
    expected = torch.zeros(10, 12, dtype=torch.bool)
    expected[:3, : int(method.selected["hidden1"].sum())] = True
    assert torch.equal(method.trainable["hidden1-hidden2"], expected)
    assert int(method.selected["hidden1"].sum()) == 5


def test_units_are_added_where_the_loss_is_too_high() -> None:
    assert widths(den(2, expand_above=1e9, split_above=1e9)) == {"hidden1": [12, 12], "hidden2": [10, 10]}
    grown = den(2, expand_above=0.0, expand_by=3, split_above=1e9, sparsity=0.0, group_sparsity=0.0)
    assert widths(grown) == {"hidden1": [12, 15], "hidden2": [10, 13]}
    assert bool((grown.params["hidden2-output"][:2, 10:] == 0).all())


def test_added_units_that_come_out_useless_are_removed() -> None:
    method = den(2, expand_above=0.0, expand_by=3, split_above=1e9, group_sparsity=100.0)
    assert widths(method) == {"hidden1": [12, 12], "hidden2": [10, 10]}


def test_while_units_are_added_old_ones_stay() -> None:
    method = begun(expand_above=0.0)
    method.unfreeze()
    method.expand()
    method.start_phase(Phase.EXPAND)
    assert not bool(method.trainable["input-hidden1"][:12].any())
    assert bool(method.trainable["input-hidden1"][12:].all())
    assert not bool(method.trainable["hidden1-hidden2"][:10, :12].any())
    assert bool(method.trainable["hidden1-hidden2"][:10, 12:].all())
    assert not bool(method.trainable["hidden2-output"][:2].any())


def changed(**settings: object) -> tuple[DEN, Tensor, Tensor]:
    """The second task has changed the whole network; the scores are the first task's before, the second's after."""
    method = begun(**settings)
    first = scores(method, 0)
    method.selected = {name: torch.ones_like(mask) for name, mask in method.selected.items()}
    method.unfreeze()
    rng = torch.Generator().manual_seed(0)
    for link in method.blueprint.links[:-1]:
        weight = method.params[link.name].data
        weight += torch.randn(weight.shape, generator=rng)
    return method, first, scores(method, 1)


def test_a_split_keeps_both_functions_where_all_units_drifted() -> None:
    method, first, second = changed(split_above=0.0)
    assert not torch.allclose(scores(method, 0), first)
    method.split_drifted()
    assert method.width("hidden1") == 24
    assert method.width("hidden2") == 20
    assert torch.equal(scores(method, 0), first)
    torch.testing.assert_close(scores(method, 1), second, rtol=1e-4, atol=1e-4)
    assert not bool(method.selected["hidden1"].any())


def test_only_units_that_drifted_far_enough_are_split() -> None:
    method = begun(split_above=0.5)
    method.unfreeze()
    method.params["input-hidden1"].data[4, :2] += torch.tensor([0.3, 0.41])  # 0.508 in all
    method.params["input-hidden1"].data[7, :2] += torch.tensor([0.3, 0.39])  # 0.492
    before, method.selected["hidden1"][4] = copies(method), True
    method.split_drifted()
    after = copies(method)
    assert (method.width("hidden1"), method.width("hidden2")) == (13, 10)
    assert torch.equal(after["input-hidden1"][12], before["input-hidden1"][4])
    assert torch.equal(after["input-hidden1"][4], method.old["input-hidden1"][4])
    assert torch.equal(after["input-hidden1"][7], before["input-hidden1"][7])
    # Old units of the next layer go on with the original.
    assert torch.equal(after["hidden1-hidden2"][:, :12], before["hidden1-hidden2"])
    assert bool((after["hidden1-hidden2"][:, 12] == 0).all())


def test_a_unit_that_stays_behind_hears_no_newer_ones() -> None:
    method = begun(split_above=0.5)
    method.unfreeze()
    method.expand()
    method.params["hidden1-hidden2"].data[3, 0] += 1.0
    method.split_drifted()
    between = copies(method)["hidden1-hidden2"]
    assert bool((between[3, 12:] == 0).all())
    assert bool((between[20, 12:] != 0).all())
    assert bool((between[4, 12:] != 0).all())


def test_a_models_units_are_those_that_came_no_later_than_its_task() -> None:
    method = den(2, expand_above=0.0, expand_by=3, sparsity=0.0, group_sparsity=0.0)
    first, second = scores(method, 0), scores(method, 1)
    for name, old in method.widths.items():
        for value in method.incoming_weights(name).values():
            value[old[0] :] += 1.0
    assert torch.equal(scores(method, 0), first)
    assert not torch.allclose(scores(method, 1), second)


def test_a_split_restores_the_norms_of_maps() -> None:
    method, stream = DEN(tiny_cnn(), DEN.Settings(split_above=0.0), 0), list(images())
    learn(method, stream[:1], TRAINING)
    with torch.no_grad():
        before = method.scores(stream[2].test.x, 0)
    learn(method, stream[1:2], TRAINING)
    assert method.width("conv2") > 12
    with torch.no_grad():
        torch.testing.assert_close(method.scores(stream[2].test.x, 0), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sparsity", "decay", "group_sparsity", "drift_penalty", "expand_by", "split_above"])
def test_settings_are_not_negative(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        DEN.Settings(**{name: -1})
