"""What was computed for prediction must not outlive the state that it was computed from."""

import pytest
import torch

from spacenet.methods.base import Method
from spacenet.methods.fecam import FeCAM
from spacenet.methods.gaussian import Gaussian
from spacenet.methods.slda import SLDA
from tests.methods.support import copy_state, learn, make, small_stream


@pytest.mark.parametrize("kind", [Gaussian, SLDA, FeCAM])
def test_a_model_that_is_loaded_takes_the_place_of_the_one_before(kind: type[Method]) -> None:
    one, other = make(kind), make(kind, seed=1)
    stream, turned = small_stream(), small_stream(((5, 4), (3, 2), (1, 0)))
    learn(one, stream)
    learn(other, turned)
    x = stream[0].test.x
    expected = one.predict(x)
    assert not torch.allclose(other.predict(x), expected)
    other.load_state(copy_state(one))
    assert torch.equal(other.predict(x), expected)
