"""Balanced classifiers: tasks become comparable, and the order within a task does not change."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.shared.balance import SCALE, SHIFT, Balance, Kind
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.methods.spacenet_rehearsal import SpaceNetRehearsal
from spacenet.space.pack import Pack
from tests.methods.support import copy_state, learn, make, small_stream

SPACE: dict[str, object] = {"selected": (10,), "reserved": (5,), "connections": (40, 40, 16)}
TASKS = [range(2), range(2, 4)]
PLAIN = Pack(lambda values, x: x + values["one"], {"one": torch.ones(1)})
WEIGHTS = torch.tensor([[3.0, 4.0], [0.0, 3.0], [6.0, 8.0], [0.0, 2.0]])  # lengths 5 and 3, 10 and 2
both = pytest.mark.parametrize("kind", ["weights", "logits"])


def learned(kind: Kind, tasks: int = 3, method: type[SparseMethod] = SpaceNet, **settings: Any) -> SparseMethod:
    made = make(method, SPACE | {"balance": kind} | settings)
    assert isinstance(made, SparseMethod)
    learn(made, small_stream()[:tasks])
    return made


def samples() -> Tensor:
    return torch.cat([task.test.x for task in small_stream()])


def test_weights_of_all_tasks_are_as_long_as_the_mean() -> None:
    found = Balance("weights").apply(PLAIN, WEIGHTS, TASKS)  # mean lengths 4 and 6
    assert found.params[SCALE].tolist() == pytest.approx([5 / 4, 5 / 4, 5 / 6, 5 / 6])
    assert found.params[SHIFT].tolist() == [0, 0, 0, 0]
    assert found(torch.tensor([[3.0, -5.0, 5.0, 11.0]])).tolist()[0] == pytest.approx([5, -5, 5, 10])


def test_kernels_count_whole_and_a_task_without_weights_stays_as_it_is() -> None:
    kernels = torch.stack([WEIGHTS, torch.zeros(4, 2)], 2)
    assert torch.equal(
        Balance("weights").apply(PLAIN, kernels, TASKS).params[SCALE],
        Balance("weights").apply(PLAIN, WEIGHTS, TASKS).params[SCALE],
    )
    silent = torch.cat([WEIGHTS, torch.zeros(1, 2)])
    found = Balance("weights").apply(PLAIN, silent, [*TASKS, range(4, 5)])
    assert found.params[SCALE].tolist() == pytest.approx([5 / 4, 5 / 4, 5 / 6, 5 / 6, 1])


def test_scores_of_the_right_classes_are_spread_alike() -> None:
    balance = Balance("logits")
    balance.record(torch.tensor([[4.0, 0.0], [9.0, 8.0]]), torch.tensor([0, 1]))  # 4 and 8: mean 6, std 2
    balance.record(torch.tensor([[1.0, 3.0], [7.0, 9.0]]), torch.tensor([0, 0]))  # 1 and 7: mean 4, std 3
    assert (balance.mean.tolist(), balance.std.tolist()) == ([6, 4], [2, 3])
    found = balance.apply(PLAIN, WEIGHTS, TASKS)  # both become mean 5, std 2.5
    assert found(torch.tensor([[3.0, 7.0, 0.0, 6.0]])).tolist()[0] == pytest.approx([2.5, 7.5, 2.5, 7.5])


def test_scores_without_a_spread_are_shifted_only() -> None:
    balance = Balance("logits")
    balance.record(torch.tensor([[4.0, 0.0]]), torch.tensor([0]))
    balance.record(torch.tensor([[1.0, 3.0], [7.0, 9.0]]), torch.tensor([0, 0]))
    found = balance.apply(PLAIN, WEIGHTS, TASKS)
    assert found.params[SCALE].tolist() == [1, 1, 1, 1]
    assert found.params[SHIFT].tolist() == [0, 0, 0, 0]  # both means are 4


def test_outputs_of_a_task_still_being_learned_stay_as_they_are() -> None:
    found = Balance("weights").apply(PLAIN, torch.cat([WEIGHTS, 9 * WEIGHTS[:1]]), TASKS)
    assert found.params[SCALE].tolist() == pytest.approx([5 / 4, 5 / 4, 5 / 6, 5 / 6, 1])


def test_without_balance_the_network_answers_as_it_is() -> None:
    assert Balance("none").apply(PLAIN, WEIGHTS, TASKS) is PLAIN
    method = learned("none")
    assert method.predictor.params.keys() == method.pack.params.keys()
    assert torch.equal(method.predict(samples()), method.pack(samples()))
    assert method.extra_state() == {}


@both
def test_training_is_the_same_and_order_within_a_task_stays(kind: Kind) -> None:
    plain, method, x = learned("none"), learned(kind), samples()
    assert all(
        torch.equal(a, b) for a, b in zip(plain.network_state().values(), method.network_state().values(), strict=True)
    )
    before, after = plain.predict(x), method.predict(x)
    assert not torch.allclose(before, after)
    for classes in method.classes:
        own = slice(classes.start, classes.stop)
        assert torch.equal(before[:, own].argsort(1), after[:, own].argsort(1))


def test_after_balancing_all_tasks_have_the_same_length_of_weights() -> None:
    method = learned("weights")
    held, scale = method.ledger.connections["hidden2-output"], method.predictor.params[SCALE]
    squares = torch.zeros(6).index_add(0, held.target.long(), held.value.square())
    length = (squares.sqrt() * scale).view(3, 2).mean(1)
    assert length.tolist() == pytest.approx([float(squares.sqrt().mean())] * 3)
    assert method.extra_state() == {}


def test_what_is_noted_is_of_the_tasks_own_samples_right_after_it() -> None:
    method, task = learned("logits", 2), small_stream()[1]
    right = method.pack(task.train.x).gather(1, task.train.y[:, None])
    assert float(method.balance.mean[1]) == pytest.approx(float(right.mean()))
    assert float(method.balance.std[1]) == pytest.approx(float(right.std(correction=0)))
    first = learned("logits", 1).balance
    assert (first.mean[0], first.std[0]) == (method.balance.mean[0], method.balance.std[0])
    assert method.extra_bytes() == 2 * 2 * 4


@both
def test_it_goes_on_from_what_was_saved_with_the_same_bits(kind: Kind) -> None:
    whole, begun = learned(kind), learned(kind, 2)
    again = make(SpaceNet, SPACE | {"balance": kind})
    again.load_state(copy_state(begun))
    assert torch.equal(again.predict(samples()), begun.predict(samples()))
    learn(again, [small_stream()[2]])
    assert torch.equal(again.predict(samples()), whole.predict(samples()))
    assert all(torch.equal(tensor, again.state()[name]) for name, tensor in whole.state().items())


@both
@pytest.mark.parametrize("replay", ["samples", "statistics"])
def test_rehearsal_keeps_it_beside_its_own(kind: Kind, replay: str) -> None:
    method = learned(kind, 2, SpaceNetRehearsal, replay=replay, replay_components=1, replay_directions=2)
    extra = method.extra_state()
    assert ("balance/mean" in extra) == (kind == "logits")
    assert ("low" in extra) == (replay == "statistics")
    method.check_state(extra, (8,))
    with pytest.raises(ValueError, match=r"unknown content \(other/x\)"):
        method.check_state({**extra, "other/x": torch.zeros(1)}, (8,))


def test_a_file_holds_no_balance_that_is_not_asked_for() -> None:
    for kind in ("none", "weights"):
        with pytest.raises(ValueError, match="the balance of tasks: unknown content"):
            learned(kind, 1).check_state({"balance/mean": torch.zeros(1)}, (8,))


def test_densities_tell_tasks_apart_without_it() -> None:
    with pytest.raises(SettingsError, match="balance: class densities, not scores, decide between tasks"):
        SpaceNetDensity.Settings(balance="weights")
