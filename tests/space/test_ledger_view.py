"""The network as it stood after a task."""

import torch

from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.methods.spacenet import SpaceNet
from spacenet.space.ledger import as_of, unit_values
from spacenet.space.pack import pack
from tests.methods.support import learn
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

SETTINGS = AdaptiveSettings(selected=(0,), reserved=(1, 1, 2, 2, 4), connections=(0.1,), expand="2:conv2=3")


def test_a_view_computes_what_the_network_did_then_also_after_it_grew() -> None:
    method, stream = SpaceNet(tiny_cnn(), SETTINGS, 0), images(3)
    x = stream[0].test.x
    kept, answers = [], []
    for task in stream:
        learn(method, [task], TRAINING)
        kept.append(unit_values(method.ledger))
        answers.append(pack(method.ledger)(x))
    assert method.ledger.size("conv2") > len(kept[0]["conv2.norm2.scale"])
    for number, (units, answer) in enumerate(zip(kept, answers, strict=True), 1):
        assert torch.equal(pack(as_of(method.ledger, number, units))(x), answer)
    assert not torch.equal(answers[2][:, :2], answers[0])


def test_a_view_is_a_copy() -> None:
    method = SpaceNet(tiny_cnn(), SETTINGS, 0)
    learn(method, images(1), TRAINING)
    view = as_of(method.ledger, 1, unit_values(method.ledger))
    view.units["conv1.norm1.scale"].zero_()
    assert bool(method.ledger.units["conv1.norm1.scale"].any())
