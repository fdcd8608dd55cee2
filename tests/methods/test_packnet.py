from dataclasses import replace
from typing import Any

import pytest
import torch

from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.packnet import FREE, PackNet, PackNetSettings
from spacenet.nets.mlp import build_mlp
from tests.methods.parts import answers, check_norms_of_their_own, learn_one, right
from tests.methods.support import TRAINING, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING as CNN_TRAINING
from tests.nets.test_convolutions import tiny_cnn


def packnet(**settings: float) -> PackNet:
    method = make(PackNet, settings)
    assert isinstance(method, PackNet)
    return method


def test_the_smallest_of_the_tasks_own_weights_are_pruned() -> None:
    method, task = PackNet(build_mlp((2,), (3,)), PackNetSettings(prune=0.5), seed=0), small_stream()[1]
    method.tasks_learned, method.classes = 1, [range(2)]
    # Two weights belong to the first task. Of the four that are free, the two smallest go, whatever their sign.
    method.owner["input-hidden1"] = torch.tensor([[0, FREE], [FREE, FREE], [FREE, 0]], dtype=torch.uint8)
    method.add_outputs(2)
    method.begin_task(task, task.train)
    weights = torch.tensor([[0.01, -0.9], [0.3, -0.2], [0.4, 0.02]])
    method.set_param("input-hidden1", weights)
    method.freeze()
    method.prune()
    kept = torch.tensor([[0, 1], [FREE, FREE], [1, 0]], dtype=torch.uint8)
    assert torch.equal(method.owner["input-hidden1"], kept)
    assert torch.equal(method.params["input-hidden1"].data, torch.tensor([[0.01, -0.9], [0.0, 0.0], [0.4, 0.02]]))
    assert torch.equal(method.trainable["input-hidden1"], kept == 1)


def test_each_task_keeps_its_part_of_what_was_free() -> None:
    method, stream = packnet(prune=0.75), small_stream()
    learn(method, stream)
    # 8 × 30 weights: 60 of 240 stay, then 45 of 180, then 34 of 135 (101.25 are pruned, so 101).
    owners, counts = method.owner["input-hidden1"].unique(return_counts=True)
    assert owners.tolist() == [0, 1, 2, FREE]
    assert counts.tolist() == [60, 45, 34, 101]
    for name, owner in method.owner.items():
        assert torch.equal(method.params[name].data == 0.0, owner == FREE)
    assert min(right(method, task) for task in stream) > 0.9


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_earlier_models_stay_to_the_bit(decay: float) -> None:
    method, stream = packnet(), small_stream()
    x = torch.cat([task.test.x for task in stream])
    training = replace(TRAINING, momentum=0.9, weight_decay=decay)
    seen = []
    for task in stream:
        learn_one(method, task, training)
        seen.append(answers(method, x, task.index))
    assert all(torch.equal(answers(method, x, task.index), seen[task.index]) for task in stream)
    assert float((seen[0] - seen[1]).abs().max()) > 0.1


def test_batch_norm_is_each_tasks_own() -> None:
    check_norms_of_their_own(lambda: PackNet(tiny_cnn(), PackNetSettings(), seed=0), CNN_TRAINING)


def test_it_retrains_for_a_part_of_the_epochs() -> None:
    epochs = learn(packnet(retrain_epochs=0.5), small_stream()[:2])
    assert len(epochs) == 2 * (6 + 3)


def test_owners_are_one_byte_for_each_weight() -> None:
    method = packnet()
    learn(method, small_stream()[:2])
    assert method.extra_bytes() == 8 * 30 + 30 * 30


def test_a_full_network_says_so_and_keeps_what_it_learned() -> None:
    method, stream = packnet(prune=0.001), small_stream()
    learn(method, stream[:1])
    before = answers(method, stream[0].test.x, 0)
    with pytest.raises(SpaceFull, match="hidden1 is full"):
        learn_one(method, stream[1])
    assert method.classes == [range(2)]
    assert torch.equal(answers(method, stream[0].test.x, 0), before)


@pytest.mark.parametrize("wrong", [{"prune": 0.0}, {"prune": 1.0}, {"retrain_epochs": -0.5}])
def test_settings_that_cannot_work(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        PackNetSettings(**wrong)
