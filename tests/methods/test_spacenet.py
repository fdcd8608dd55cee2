import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.base import Batch
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_rehearsal import SpaceNetRehearsal
from spacenet.methods.static_sparse import StaticSparse
from spacenet.space.ledger import FREE
from spacenet.training.loop import make_optimizer
from tests.methods.support import CUT, accuracy, copy_state, learn, make, small_stream

SPACE: dict[str, object] = {"selected": (10,), "reserved": (5,), "connections": (40, 40, 16)}


def spacenet(**settings: object) -> SpaceNet:
    method = make(SpaceNet, SPACE | settings)
    assert isinstance(method, SpaceNet)
    return method


def test_it_learns_and_remembers() -> None:
    method, stream = spacenet(), small_stream()
    epochs = learn(method, stream)
    assert len(epochs) == 18
    assert epochs[-1].loss < epochs[12].loss
    assert sum(accuracy(method, stream)) / 3 > 0.5  # without the task identity; chance is 1/6
    assert method.predict(stream[0].test.x).shape == (60, 6)


def test_each_task_gets_its_connections_and_its_units() -> None:
    method = spacenet()
    learn(method, small_stream())
    for link, count in (("input-hidden1", 40), ("hidden1-hidden2", 40), ("hidden2-output", 16)):
        owner = method.ledger.connections[link].owner
        assert [int((owner == task).sum()) for task in range(3)] == [count] * 3
    layers = {layer.name: layer for layer in method.layer_usage()}
    assert layers["hidden1"].units == 30
    assert layers["hidden1"].reserved == 15
    assert layers["hidden1"].used + layers["hidden1"].unused == 30
    assert layers["hidden1"].connections == 120
    assert layers["output"].units == 6


def test_phantom_classes_weigh_like_that_many_scores_of_zero() -> None:
    method = spacenet(phantom_classes=8)
    task = small_stream()[0]
    method.begin_task(task, task.train)
    output = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    batch = Batch(torch.zeros(2, 8), torch.tensor([0, 1]), torch.arange(2))
    spelled_out = F.cross_entropy(torch.cat([output, torch.zeros(2, 8)], 1), batch.y)
    assert float(method.loss(output, batch)) == pytest.approx(float(spelled_out), rel=1e-6)
    alone = spacenet(phantom_classes=0)
    alone.begin_task(task, task.train)
    assert float(alone.loss(output, batch)) == pytest.approx(float(F.cross_entropy(output, batch.y)))


@pytest.mark.parametrize("count", [1, 8])
def test_phantom_classes_of_earlier_tasks_may_keep_their_biases(count: int) -> None:
    method, stream = spacenet(phantom_classes=count, phantom_scores="bias"), small_stream()
    learn(method, stream[:1])
    biases = method.ledger.units["output.bias"][:2]
    assert biases.count_nonzero() == 2
    method.begin_task(stream[1], stream[1].train)
    output = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    batch = Batch(torch.zeros(2, 8), torch.tensor([2, 3]), torch.arange(2))
    others = torch.cat([biases, torch.zeros(max(0, count - 2))]).expand(2, -1)
    spelled_out = F.cross_entropy(torch.cat([output, others], 1), batch.y - 2)
    assert float(method.loss(output, batch)) == pytest.approx(float(spelled_out), rel=1e-6)
    first = spacenet(phantom_classes=count, phantom_scores="bias")
    first.begin_task(stream[0], stream[0].train)
    assert first.phantom_weight == count  # there are no earlier classes yet


def test_label_smoothing_distributes_a_part_over_all_outputs() -> None:
    method, task = spacenet(phantom_classes=0, label_smoothing=0.2), small_stream()[0]
    method.begin_task(task, task.train)
    output, batch = torch.tensor([[2.0, 0.0]]), Batch(torch.zeros(1, 8), torch.tensor([0]), torch.arange(1))
    likely, unlikely = output.log_softmax(1)[0].tolist()
    assert float(method.loss(output, batch)) == pytest.approx(-0.9 * likely - 0.1 * unlikely)


def test_a_later_task_counts_its_classes_from_its_first() -> None:
    method, stream = spacenet(), small_stream()
    learn(method, stream[:1])
    task = stream[1]
    method.begin_task(task, task.train)
    batch = Batch(task.train.x[:4], task.train.y[:4], torch.arange(4))
    assert method.forward(batch).shape == (4, 2)
    assert torch.equal(method.target(batch), task.train.y[:4] - 2)


def test_old_classifiers_are_set_aside_while_training_and_back_for_prediction() -> None:
    method, stream = spacenet(), small_stream()
    learn(method, stream[:2])
    task = stream[2]
    method.begin_task(task, task.train)
    assert method.workspace is not None
    assert method.workspace.units["output"].tolist() == [4, 5]
    rehearsal = make(SpaceNetRehearsal, SPACE)
    learn(rehearsal, stream[:2])
    rehearsal.begin_task(task, rehearsal.training_data(task))
    assert isinstance(rehearsal, SpaceNetRehearsal)
    assert rehearsal.workspace is not None
    assert rehearsal.workspace.units["output"].tolist() == list(range(6))


def test_rehearsal_trains_on_everything_and_says_so() -> None:
    method, stream = make(SpaceNetRehearsal, SPACE), small_stream()
    learn(method, stream)
    assert len(method.memory) == 180
    assert method.bytes_kept() >= 180 * 8 * 4
    assert sum(accuracy(method, stream)) / 3 > 0.75


def test_static_connections_stay_where_they_were_laid() -> None:
    stream = small_stream()
    before = {}
    for kind in (StaticSparse, SpaceNet):
        method = make(kind, SPACE)
        assert isinstance(method, SparseMethod)
        method.begin_task(stream[0], stream[0].train)
        assert method.workspace is not None
        before[kind] = {name: training.position.clone() for name, training in method.workspace.links.items()}
        optimizer = make_optimizer(method, TrainingConfig())
        for epoch in range(3):
            batch = Batch(stream[0].train.x, stream[0].train.y, torch.arange(60))
            optimizer.zero_grad()
            method.backward(method.loss(method.forward(batch), batch))
            method.step(optimizer)
            method.end_epoch(epoch, optimizer, last=epoch == 2)
        moved = [
            not torch.equal(training.position, before[kind][name]) for name, training in method.workspace.links.items()
        ]
        assert moved == ([False] * 3 if kind is StaticSparse else [True, True, False])


def test_a_grown_connection_inherits_no_momentum() -> None:
    method, task = spacenet(rewire_fraction=0.5), small_stream()[0]
    method.begin_task(task, task.train)
    optimizer = make_optimizer(method, TrainingConfig(momentum=0.9))
    batch = Batch(task.train.x, task.train.y, torch.arange(60))
    method.backward(method.loss(method.forward(batch), batch))
    method.step(optimizer)
    assert method.workspace is not None
    training = method.workspace.links["input-hidden1"]
    (momentum,) = optimizer.state_tensors().values()
    history = momentum[: len(training.params)]
    assert int((history != 0).sum()) > 20
    method.end_epoch(0, optimizer, last=False)
    grown = training.params == 0
    assert int(grown.sum()) == 20
    assert not history[grown].any()


def test_nothing_is_rewired_after_the_last_epoch() -> None:
    method, task = spacenet(), small_stream()[0]
    method.begin_task(task, task.train)
    optimizer = make_optimizer(method, TrainingConfig())
    assert method.workspace is not None
    before = method.workspace.links["input-hidden1"].position.clone()
    method.end_epoch(3, optimizer, last=True)
    assert torch.equal(method.workspace.links["input-hidden1"].position, before)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"selected": (31,)}, "31 units of hidden1 cannot be selected, it has 30"),
        ({"selected": (10, 10, 10)}, "selected: 3 numbers for hidden1, hidden2; give one number, or 2"),
        ({"reserved": (11,)}, "11 units of hidden1 cannot be reserved of 10 selected"),
        (
            {"connections": (81, 40, 16)},
            "connections: 81 do not fit between the 8 units of input",
        ),
        ({"connections": (40, 40)}, "connections: 2 numbers"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_training(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        spacenet(**settings).check(small_stream())


@pytest.mark.parametrize(
    "settings", [{"rewire_fraction": 1.1}, {"rewire_fraction": -0.1}, {"phantom_classes": -1}, {"label_smoothing": 1.0}]
)
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        spacenet(**settings)


def test_shares_of_a_layer_become_counts() -> None:
    budget = spacenet(connections=(0.1,)).budget(classes=2)
    assert budget.connections == {"input-hidden1": 24, "hidden1-hidden2": 90, "hidden2-output": 6}


def test_a_full_space_is_predicted_and_loses_nothing() -> None:
    method = make(SpaceNet, SPACE, hidden=(16, 16))
    assert isinstance(method, SpaceNet)
    stream = small_stream()
    assert method.check(stream) == ["the space holds 2 of the stream's 3 tasks with these settings"]
    learn(method, stream[:2])
    before = copy_state(method)
    predicted = method.predict(stream[0].test.x)
    with pytest.raises(SpaceFull, match="hidden1 is full: the next task needs 10 free units, 6 are left"):
        method.begin_task(stream[2], stream[2].train)
    assert all(torch.equal(tensor, before[name]) for name, tensor in method.state().items())
    assert torch.equal(method.predict(stream[0].test.x), predicted)


def test_reserved_units_stay_with_their_task() -> None:
    method, stream = spacenet(), small_stream()
    seen = torch.full((30,), FREE, dtype=torch.int16)
    for index in range(3):
        learn_one = stream[index]
        method.begin_task(learn_one, learn_one.train)
        method.end_task(learn_one)
        state = method.ledger.state["hidden1"]
        assert torch.equal(state[seen != FREE], seen[seen != FREE])
        seen = state.clone()


def test_the_whole_network_behind_masks_gives_the_same_result() -> None:
    stream = small_stream()
    compact, whole = spacenet(), spacenet(masked_dense=True)
    for method in (compact, whole):
        learn(method, stream)
    assert math.isclose(sum(accuracy(compact, stream)), sum(accuracy(whole, stream)), abs_tol=0.05)
    for link in ("input-hidden1", "hidden1-hidden2"):
        one, two = (method.ledger.connections[link] for method in (compact, whole))
        assert torch.equal(one.target, two.target)
        torch.testing.assert_close(one.value, two.value, atol=1e-3, rtol=1e-2)


def test_uneven_tasks() -> None:
    stream = small_stream(((0,), CUT[1] + (4,), (5, 1)))
    method = spacenet(connections=(40, 40, 0.2))
    method.check(stream)
    learn(method, stream)
    assert method.predict(stream[0].test.x).shape[1] == 6


def test_the_first_task_may_get_more_of_the_space() -> None:
    method = spacenet(first_selected=(20,), first_reserved=(9,), first_connections=(90, 80, 20))
    stream = small_stream()
    assert method.check(stream) == []
    learn(method, stream[:2])
    counts = [held.owner.bincount().tolist() for held in method.ledger.connections.values()]
    assert counts == [[90, 40], [80, 40], [20, 16]]
    assert [int((method.ledger.state["hidden1"] == task).sum()) for task in (0, 1)] == [9, 5]


def test_a_large_first_task_counts_in_the_prediction_of_space() -> None:
    method = spacenet(first_selected=(30,), first_reserved=(25,))
    assert method.check(small_stream()) == ["the space holds 1 of the stream's 3 tasks with these settings"]


def test_a_subclass_may_scale_the_loss() -> None:
    class Halved(SpaceNet):
        def loss(self, output: Tensor, batch: Batch) -> Tensor:
            return 0.5 * super().loss(output, batch)

    gradients, task = [], small_stream()[0]
    for kind in (SpaceNet, Halved):
        method = make(kind, SPACE)
        method.begin_task(task, task.train)
        batch = Batch(task.train.x, task.train.y, torch.arange(60))
        method.backward(method.loss(method.forward(batch), batch))
        (parameter,) = method.parameters()
        assert parameter.grad is not None
        gradients.append(parameter.grad)
    torch.testing.assert_close(gradients[1], 0.5 * gradients[0])
    assert gradients[0].any()
