import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.config.model import PreprocessingConfig
from spacenet.data.preprocessing import Normalization, resolve_preprocessing


def normalization(root: bool, shape: tuple[int, ...], seed: int = 0) -> Normalization:
    x = np.random.default_rng(seed).gamma(1.0, 2.0, (50, *shape)).astype(np.float32)
    return Normalization.fit(x, PreprocessingConfig(root=root))


@given(st.booleans(), st.sampled_from([(5,), (3, 8, 8), (6, 6)]), st.integers(0, 9))
def test_the_inverse_gives_raw_values_back(root: bool, shape: tuple[int, ...], seed: int) -> None:
    fitted = normalization(root, shape, seed)
    z = torch.randn(4, *shape, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(fitted(fitted.invert(z)), z, rtol=1e-3, atol=1e-4)


def test_roots_are_normalized_not_the_values() -> None:
    x = np.random.default_rng(0).gamma(1.0, 2.0, (500, 4)).astype(np.float32)
    rooted, plain = (Normalization.fit(x, PreprocessingConfig(root=root))(x) for root in (True, False))
    expected = Normalization.fit(np.sqrt(x), PreprocessingConfig())(np.sqrt(x))
    torch.testing.assert_close(rooted, expected)
    skewness = [float((z**3).mean()) for z in (rooted, plain)]
    assert abs(skewness[0]) < abs(skewness[1]) / 2


def test_the_root_of_a_negative_value_has_its_sign() -> None:
    fitted = Normalization(1.0, torch.zeros(2), torch.ones(()), root=True)
    assert fitted(np.array([[-4.0, 9.0]])).tolist() == [[-2.0, 3.0]]


@pytest.mark.parametrize(("encoder", "root", "expected"), [(None, None, False), (None, True, True)])
def test_only_features_of_an_encoder_are_rooted_by_default(
    encoder: str | None, root: bool | None, expected: bool
) -> None:
    config = PreprocessingConfig(encoder=encoder, root=root)
    assert resolve_preprocessing(config, np.zeros((3, 4))).root is expected
