from dataclasses import replace

import pytest
import torch

from spacenet.data.stream import Stream
from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.piggyback import Piggyback, PiggybackSettings, pack_mask, unpack_mask
from spacenet.nets.mlp import build_mlp
from tests.methods.parts import answers, check_norms_of_their_own, learn_one, right
from tests.methods.support import TRAINING, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING as CNN_TRAINING
from tests.nets.test_convolutions import tiny_cnn

ADAM = replace(TRAINING, optimizer="adam", learning_rate=0.003, weight_decay=0.01)


def learned(stream: Stream) -> Piggyback:
    method = make(Piggyback)
    assert isinstance(method, Piggyback)
    learn(method, stream, ADAM)
    return method


def test_eight_weights_share_a_byte() -> None:
    mask = torch.tensor([[True, False, True], [True, False, False], [False, False, True]])
    assert pack_mask(mask).tolist() == [1 + 4 + 8, 1]
    assert torch.equal(unpack_mask(pack_mask(mask), mask), mask)


def test_scores_get_the_gradient_of_their_mask() -> None:
    method, task = Piggyback(build_mlp((2,), (1,)), PiggybackSettings(), seed=0), small_stream()[1]
    method.tasks_learned, method.classes = 1, [range(2)]
    method.add_outputs(2)
    method.begin_task(task, task.train)
    method.set_param("input-hidden1", torch.tensor([[3.0, 5.0]]))
    method.set_param("hidden1-output", torch.tensor([[9.0], [9.0], [2.0], [-1.0]]))
    method.freeze()
    method.mask_scores["input-hidden1"].data[0, 1] = 0.004  # below the threshold
    batch = Batch(torch.tensor([[0.5, 7.0]]), torch.tensor([2]), torch.tensor([0]))
    output = method.forward(batch)
    # hidden = 3 × 0.5: the second weight is off. Outputs are the task's own two.
    assert output.tolist() == [[3.0, -1.5]]
    output[0, 0].backward()
    # d output / d mask = 2 × weight × input, also where the mask is off.
    gradient = method.mask_scores["input-hidden1"].grad
    assert gradient is not None
    assert gradient.tolist() == [[2 * 3 * 0.5, 2 * 5 * 7.0]]
    assert method.params["input-hidden1"].grad is None


def test_the_backbone_and_earlier_models_stay_to_the_bit() -> None:
    stream = small_stream()
    method = learned(stream[:1])
    x = torch.cat([task.test.x for task in stream])
    backbone = {name: value.detach().clone() for name, value in method.params.items()}
    seen = [answers(method, x, 0)]
    for number in (1, 2):
        learn_one(method, stream[number], ADAM)
        seen.append(answers(method, x, number))
    for name, before in backbone.items():
        assert torch.equal(method.params[name][: len(before)], before)
    assert all(torch.equal(answers(method, x, number), seen[number]) for number in range(3))
    assert min(right(method, task) for task in stream) > 0.8


def test_later_tasks_learn_masks_of_a_bit_for_each_weight() -> None:
    stream = small_stream()
    method = learned(stream)
    assert [sorted(masks) for masks in method.masks] == [[], *[["hidden1-hidden2", "input-hidden1"]] * 2]
    assert method.extra_bytes() == 2 * (30 + 113)  # 240 and 900 weights
    for masks in method.masks[1:]:
        part = unpack_mask(masks["hidden1-hidden2"], method.params["hidden1-hidden2"]).float().mean()
        assert 0.1 < float(part) < 0.99
    assert not torch.equal(method.masks[1]["hidden1-hidden2"], method.masks[2]["hidden1-hidden2"])


def test_the_mask_that_is_kept_is_the_one_that_was_learned() -> None:
    method, task = learned(small_stream()[:1]), small_stream()[1]
    method.begin_task(task, task.train)
    rng = torch.Generator().manual_seed(0)
    for score in method.mask_scores.values():
        score.data = 0.01 * torch.rand(score.shape, generator=rng)
    before = answers(method, task.test.x, 1).detach()
    method.end_task(task)
    assert torch.equal(answers(method, task.test.x, 1), before)


def test_batch_norm_is_each_tasks_own() -> None:
    training = replace(CNN_TRAINING, optimizer="adam", learning_rate=0.003)
    check_norms_of_their_own(lambda: Piggyback(tiny_cnn(), PiggybackSettings(), seed=0), training)


def test_a_threshold_that_silences_everything_is_refused() -> None:
    with pytest.raises(SettingsError, match="initial"):
        PiggybackSettings(initial=0.005, threshold=0.005)
