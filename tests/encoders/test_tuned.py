"""Tuned networks as files that are encoders again."""

from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import open_content
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.libraries import from_module
from spacenet.encoders.tuned import copy_network, find_network, write_tuned
from spacenet.errors import SettingsError
from tests.encoders.support import FEATURES, SIZE, TinyEncoder, pictures, save_exported, tiny_texts


def test_a_file_gives_the_features_of_the_network_whatever_its_normalization() -> None:
    own = ImageInput(SIZE, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    encoder = from_module("tiny", TinyEncoder(), own, "")
    read = open_content("tuned.pt2", write_tuned(copy_network(encoder), own, SIZE))
    assert (read.features, read.shape) == (FEATURES, (3, SIZE, SIZE))
    images = pictures(5)
    assert np.allclose(read.encode(read.prepare(images)), encoder.encode(encoder.prepare(images)), atol=1e-5)


def test_features_may_be_those_of_an_image_and_its_mirror_image() -> None:
    own = ImageInput(SIZE)
    encoder = from_module("tiny", TinyEncoder(), own, "")
    read = open_content("tuned.pt2", write_tuned(copy_network(encoder), own, SIZE, mirror=True))
    prepared = encoder.prepare(pictures(5))
    both = [encoder.encode(np.ascontiguousarray(each)) for each in (prepared, prepared[..., ::-1])]
    assert np.allclose(read.encode(prepared), np.mean(both, 0), atol=1e-5)
    assert np.allclose(read.encode(np.ascontiguousarray(prepared[..., ::-1])), np.mean(both, 0), atol=1e-5)


def test_a_copy_has_weights_of_its_own() -> None:
    encoder = from_module("tiny", TinyEncoder(), ImageInput(SIZE), "")
    copied = copy_network(encoder)
    pairs = list(zip(copied.parameters(), find_network(encoder).parameters(), strict=True))
    assert all(new.requires_grad and not old.requires_grad and torch.equal(new, old) for new, old in pairs)
    assert all(new.data_ptr() != old.data_ptr() for new, old in pairs)


def test_what_cannot_be_trained_says_so(tmp_path: Path) -> None:
    content = save_exported(tmp_path / "tiny.pt2").read_bytes()
    function = Encoder("own:function", "", "", FEATURES, lambda x: x.mean((2, 3)), ImageInput(SIZE))
    for encoder, problem in (
        (open_content("tiny.pt2", content), "the network of tiny.pt2 cannot be trained"),
        (function, "the network of own:function cannot be trained"),
        (tiny_texts(), "letters takes texts.*only encoders of images are tuned"),
    ):
        with pytest.raises(SettingsError, match=problem):
            find_network(encoder)
