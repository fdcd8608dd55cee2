import torch

from spacenet.config.training import TrainingConfig
from spacenet.methods.base import Batch
from spacenet.methods.cwr import CWR
from spacenet.methods.shared.masked import subtract_mean
from tests.methods.support import accuracy, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING as OF_IMAGES
from tests.nets.test_convolutions import images, tiny_cnn

ROUGH = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.1, momentum=0.9, weight_decay=0.1)


def cwr() -> CWR:
    method = make(CWR)
    assert isinstance(method, CWR)
    return method


def test_consolidated_weights_are_the_temporary_ones_without_their_average() -> None:
    method, stream = cwr(), small_stream()
    learn(method, stream[:1])
    old = method.params["hidden2-output"].detach().clone()
    task = stream[1]
    method.begin_task(task, task.train)
    assert not method.params["hidden2-output"][2:].any()
    assert not method.params["output.bias"][2:].any()
    with torch.no_grad():
        method.params["hidden2-output"][2:] = torch.tensor([[1.0] * 30, [4.0] * 30])
        method.params["output.bias"][2:] = torch.tensor([0.0, 3.0])
    method.end_task(task)
    assert method.params["hidden2-output"][2:].tolist() == [[-1.5] * 30, [1.5] * 30]
    assert method.params["output.bias"][2:].tolist() == [-1.5, 1.5]
    assert torch.equal(method.params["hidden2-output"][:2], old)


def test_the_average_is_one_number_for_all_weights_of_the_task() -> None:
    weights = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    subtract_mean(weights)
    assert weights.tolist() == [[-2.0, -1.0], [0.0, 3.0]]


def test_only_the_tasks_own_classes_take_part_in_its_training() -> None:
    method, stream = cwr(), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(6))
    assert method.forward(batch).shape == (6, 2)
    assert method.target(batch).tolist() == (batch.y - 2).tolist()
    assert method.predict(batch.x).shape == (6, 4)


def test_after_the_first_task_only_new_outputs_change() -> None:
    method, stream = cwr(), small_stream()
    untrained = method.params["input-hidden1"].detach().clone()
    learn(method, stream[:1], ROUGH)
    first = {name: tensor.clone() for name, tensor in method.network_state().items()}
    assert not torch.equal(first["params/input-hidden1"], untrained)
    later = cwr()
    learn(later, stream, ROUGH)
    for name, tensor in later.network_state().items():
        assert torch.equal(tensor[: len(first[name])], first[name]), name
    assert later.network_state()["params/output.bias"].shape == (6,)
    assert bool(later.network_state()["params/output.bias"][2:].any())


def test_frozen_maps_keep_their_statistics() -> None:
    stream = images(2)
    one, both = (CWR(tiny_cnn(), CWR.Settings(), 0) for _ in range(2))
    learn(one, stream[:1], OF_IMAGES)
    learn(both, stream, OF_IMAGES)
    for name, tensor in one.network_state().items():
        assert torch.equal(both.network_state()[name][: len(tensor)], tensor), name


def test_it_remembers() -> None:
    method, stream = cwr(), small_stream()
    learn(method, stream)
    assert sum(accuracy(method, stream)) / 3 > 0.5
    assert not method.extra_state()
