import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from spacenet.data.augmentation import PADDING, CropAndFlip, check_images
from spacenet.data.stream import Samples
from spacenet.errors import SettingsError


def images(n: int = 6, shape: tuple[int, ...] = (3, 8, 10)) -> Samples:
    return Samples(torch.rand(n, *shape, generator=Generator().manual_seed(0)) + 1, torch.zeros(n, dtype=torch.long))


def expected(image: Tensor, top: int, left: int, flipped: bool) -> Tensor:
    """Slowly and plainly: pad, cut, flip."""
    padded = torch.nn.functional.pad(image, [PADDING] * 4)
    cut = padded[..., top : top + image.shape[-2], left : left + image.shape[-1]]
    return cut.flip(-1) if flipped else cut


@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(3, 8, 10), (1, 4, 4), (5, 7)]))
def test_each_image_is_cropped_out_of_its_padded_self_and_flipped(seed: int, shape: tuple[int, ...]) -> None:
    data = images(shape=shape)
    augment = CropAndFlip(data)
    augment.draw(Generator().manual_seed(seed))
    rows = torch.tensor([4, 0, 4, 5])
    for got, row in zip(augment(rows), rows.tolist(), strict=True):
        place = int(augment.top[row]), int(augment.left[row]), bool(augment.flipped[row])
        assert torch.equal(got, expected(data.x[row], *place))


def test_what_is_drawn_covers_every_place_and_follows_the_seed() -> None:
    augment, again = CropAndFlip(images(2000)), CropAndFlip(images(2000))
    augment.draw(Generator().manual_seed(1))
    again.draw(Generator().manual_seed(1))
    assert torch.equal(augment.top, again.top)
    assert sorted(augment.top.unique().tolist()) == list(range(2 * PADDING + 1))
    assert sorted(augment.left.unique().tolist()) == list(range(2 * PADDING + 1))
    assert 0.4 < float(augment.flipped.float().mean()) < 0.6
    before = augment.top
    augment.draw(Generator().manual_seed(2))
    assert augment.top is before  # in place: a recorded step reads it there
    assert not torch.equal(augment.top, again.top)


def test_only_images_can_be_augmented() -> None:
    with pytest.raises(SettingsError, match="augment: only images"):
        check_images((784,))
    check_images((28, 28))
    check_images((3, 32, 32))
