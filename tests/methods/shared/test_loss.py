"""Which outputs take part in the loss of a task, in every method that does not keep old data."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.ewc import EWC
from spacenet.methods.naive import Naive
from spacenet.methods.packnet import PackNet
from spacenet.methods.shared.dense import DenseMethod, LossSettings, PhantomSettings
from spacenet.methods.shared.task_models import TaskModels
from spacenet.registry import METHODS
from spacenet.space.operations import add_phantoms
from tests.methods.support import accuracy, copy_state, learn, make, small_stream

KINDS = {name: METHODS[name].Settings for name in METHODS}
CHOOSE = [name for name, kind in KINDS.items() if issubclass(kind, LossSettings)]
OWN = [name for name in METHODS if issubclass(METHODS[name], TaskModels)]


def in_second_task(method: DenseMethod) -> tuple[Batch, Tensor]:
    """A batch of the second task, and the scores of all outputs for it, with every parameter moved a bit."""
    stream = small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    method.begin_epoch(0)
    batch = Batch.pick(stream[1].train, torch.arange(7))
    return batch, method.compute(batch.x).detach()


def data_loss(method: DenseMethod, batch: Batch) -> Tensor:
    """The method's loss without what it adds to the cross-entropy."""
    return method.cross_entropy(method.forward(batch), method.target(batch))


def test_every_method_without_old_data_has_the_setting() -> None:
    assert CHOOSE == ["naive", "ewc", "si", "mas", "lwf", "ldc", "clnp", "cwr", "ar1"]
    assert OWN == ["den", "packnet", "piggyback", "pnn", "pathnet"]
    assert all(issubclass(KINDS[name], PhantomSettings) for name in OWN)


@pytest.mark.parametrize("name", CHOOSE)
def test_over_all_classes_over_the_tasks_own_or_with_phantoms(name: str) -> None:
    for loss_over, count in (("all", 0), ("own", 0), ("own", 8)):
        method = make(METHODS[name], {"loss_over": loss_over, "phantom_classes": count})
        assert isinstance(method, DenseMethod)
        batch, scores = in_second_task(method)
        first = 2 if loss_over == "own" else 0
        assert torch.equal(method.forward(batch), scores[:, first:])
        expected = F.cross_entropy(torch.cat([scores[:, first:], torch.zeros(7, count)], 1), batch.y - first)
        torch.testing.assert_close(data_loss(method, batch), expected)


@pytest.mark.parametrize("name", OWN)
def test_models_of_one_task_have_phantoms_in_the_loss_and_in_their_probabilities(name: str) -> None:
    method = make(METHODS[name], {"phantom_classes": 3})
    assert isinstance(method, TaskModels)
    batch, _ = in_second_task(method)
    scores = method.forward(batch)
    assert scores.shape == (7, 2)
    expected = F.cross_entropy(torch.cat([scores, torch.zeros(7, 3)], 1), batch.y - 2)
    torch.testing.assert_close(data_loss(method, batch), expected)
    probabilities = method.predict(batch.x)
    by_hand = torch.cat([method.scores(batch.x, 0), torch.zeros(7, 3)], 1).softmax(1)[:, :2]
    torch.testing.assert_close(probabilities[:, :2], by_hand)


def test_phantoms_weigh_like_that_many_scores_of_zero() -> None:
    scores = torch.tensor([[1.0, -2.0], [0.0, 3.0]])
    added = add_phantoms(scores, 5)
    torch.testing.assert_close(added.softmax(1)[:, :2], torch.cat([scores, torch.zeros(2, 5)], 1).softmax(1)[:, :2])
    assert add_phantoms(scores, 0) is scores


def test_learning_own_outputs_only_leaves_the_old_ones_alone() -> None:
    method, stream = make(Naive, {"loss_over": "own"}), small_stream()
    assert isinstance(method, Naive)
    learn(method, stream[:1])
    old = copy_state(method)["network/params/hidden2-output"]
    learn(method, list(stream)[1:])
    assert torch.equal(method.params["hidden2-output"][:2], old)
    over_all = make(Naive)
    learn(over_all, stream)
    assert accuracy(method, stream)[0] > accuracy(over_all, stream)[0]


def test_ewcs_fisher_is_that_of_the_loss() -> None:
    """The likelihood of the task's own classes does not depend on old outputs."""
    stream = small_stream()
    for settings, important in (({"loss_over": "all"}, True), ({"loss_over": "own", "phantom_classes": 2}, False)):
        method = make(EWC, settings)
        assert isinstance(method, EWC)
        learn(method, stream[:1])
        method.begin_task(stream[1], stream[1].train)
        fisher = method.fisher(stream[1])["hidden2-output"]
        assert bool(fisher[:2].any()) == important
        assert bool(fisher[2:].any())


@pytest.mark.parametrize("settings", [{"loss_over": "seen"}, {"phantom_classes": -1}])
def test_settings_are_checked(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings)).split("_")[0]):
        make(Naive, settings)


def test_a_task_that_is_interrupted_goes_on_with_the_same_loss() -> None:
    method, stream = make(PackNet, {"phantom_classes": 4}), small_stream()
    again = make(PackNet, {"phantom_classes": 4})
    learn(method, stream[:1])
    again.load_state(copy_state(method))
    for each in (method, again):
        learn(each, list(stream)[1:])
    assert torch.equal(method.predict(stream[0].test.x), again.predict(stream[0].test.x))
