"""An encoder's network is trained by the loop of all methods."""

import numpy as np
import pytest
import torch

from spacenet.config.training import TrainingConfig
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.libraries import from_module
from spacenet.encoders.tuned import find_network
from spacenet.errors import DataError
from spacenet.training.tuning import Tuned, tune
from tests.encoders.support import SIZE, TinyEncoder, pictures

TRAINING = TrainingConfig(epochs=8, batch_size=8, learning_rate=0.05, momentum=0.9, bn_recalibration_epochs=0)
X, Y = np.concatenate([pictures(12, label, (12, 12)) for label in (3, 4)]), np.repeat([0, 1], 12)
"""Noisy images that colors alone tell apart."""


def encoder() -> Encoder:
    return from_module("tiny", TinyEncoder(), ImageInput(SIZE), "")


def learned(seed: int = 0) -> Tuned:
    return tune(encoder(), X, Y, size=SIZE, training=TRAINING, seed=seed)


def test_classes_are_told_apart_and_the_encoder_stays_as_it_was() -> None:
    given, epochs = encoder(), list[float]()
    before = {name: tensor.clone() for name, tensor in find_network(given).state_dict().items()}
    tuned = tune(given, X, Y, size=SIZE, training=TRAINING, on_epoch=lambda epoch: epochs.append(epoch.accuracy))
    assert len(epochs) == 8
    assert tuned.last.accuracy == epochs[-1] > 95
    after, new = find_network(given).state_dict(), tuned.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not any(torch.equal(before[name], new[name]) for name in before)
    assert not tuned.network.training


def test_the_seed_decides_the_weights() -> None:
    one, same, other = (learned(seed).network.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_images_of_any_shape_are_brought_to_the_size() -> None:
    training = TrainingConfig(epochs=1, batch_size=8, bn_recalibration_epochs=0)
    for x in (X[:, 0], X[:, :1], np.repeat(X, 3, axis=2), pictures(24, 0, (40, 30))):
        assert tune(encoder(), x, Y, size=SIZE, training=training).last.epochs == 1


def test_one_class_and_what_is_no_image_are_refused() -> None:
    with pytest.raises(DataError, match="there is only one"):
        tune(encoder(), X, np.zeros(24, int), size=SIZE, training=TRAINING)
    with pytest.raises(DataError, match="takes images as bytes"):
        tune(encoder(), X.astype(np.float32), Y, size=SIZE, training=TRAINING)
