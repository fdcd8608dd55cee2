"""Edges: what changes where, in which direction."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spacenet.methods.density.edges import CHUNK, DIRECTIONS, extract_edges, supports_edges


def slowly(x: torch.Tensor) -> torch.Tensor:
    """The same by torch's own padding and pooling, for 28 × 28 images of one channel."""
    padded = F.pad(x[:, None].double(), [1] * 4, mode="replicate")
    across, down = padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2], padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]
    strength, angle = torch.hypot(across, down), torch.atan2(down, across)
    found = []
    for number in range(DIRECTIONS // 2):
        for turn in (0.0, torch.pi):  # forth and back stand side by side
            cosine = torch.cos(angle - 2 * torch.pi * number / DIRECTIONS - turn).clamp_min(0)
            pooled = F.avg_pool2d(cosine**7 * strength, 8, 4, padding=2, count_include_pad=True)
            found.append(pooled[:, 0] * 64)  # sums
    return torch.stack(found, 1).flatten(1).sqrt()


def test_they_are_pooled_cosines_of_the_gradients_angle() -> None:
    x = torch.rand(CHUNK + 5, 28, 28, generator=torch.Generator().manual_seed(0))
    for count in (1, 5, len(x)):
        torch.testing.assert_close(extract_edges(x[:count]).double(), slowly(x[:count]), atol=1e-4, rtol=1e-4)


def test_a_step_from_left_to_right_has_one_direction() -> None:
    x = torch.zeros(1, 28, 28)
    x[:, :, 14:] = 1.0
    by_direction = extract_edges(x).view(DIRECTIONS, -1).sum(1)
    assert by_direction.argmax() == 0
    assert float(by_direction[0]) > 10 * float(by_direction[1]) == 0.0  # nothing goes back


@given(height=st.integers(4, 33), width=st.integers(4, 33), channels=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_images_of_any_size_show_edges_and_even_ones_do_not(height: int, width: int, channels: int) -> None:
    assert supports_edges((channels, height, width))
    x = torch.rand(2, channels, height, width)
    found = extract_edges(x)
    assert found.shape[1] % DIRECTIONS == 0
    assert found.shape[1] > 0
    assert bool(found.isfinite().all())
    assert bool((found > 0).any())
    assert not bool(extract_edges(torch.full_like(x, 0.3)).any())
    torch.testing.assert_close(extract_edges(x[:1]), found[:1])  # a sample's edges are its own


@pytest.mark.parametrize("shape", [(784,), (3, 40), (1, 2, 3, 4)])
def test_what_is_no_image_shows_none(shape: tuple[int, ...]) -> None:
    assert not supports_edges(shape)
