import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet.encoders.inputs import Array, ImageInput
from spacenet.errors import DataError
from tests.encoders.support import FEATURES, SIZE, one_color, pictures, tiny

pytest.importorskip("PIL", reason="images need the extra 'images'")


def test_images_of_any_size_become_squares() -> None:
    encoder = tiny()
    for size in ((8, 8), (20, 24), (64, 31)):
        prepared = encoder.prepare(pictures(3, size=size))
        assert prepared.shape == (3, 3, SIZE, SIZE)
        assert prepared.dtype == np.uint8


def test_gray_images_have_three_equal_channels() -> None:
    gray = pictures(2)[:, 0]
    for x in (gray, gray[:, None]):
        prepared = tiny().prepare(x)
        assert np.array_equal(prepared[:, 0], prepared[:, 2])


def test_of_large_images_the_middle_is_kept_and_small_ones_are_kept_whole() -> None:
    image = np.zeros((3, 100, 140), np.uint8)
    image[:, 10:90, 30:110] = 255  # the middle 80 % of the middle square
    assert ImageInput(SIZE, crop=0.8).prepare_array(image).min() > 200  # but for what resizing mixes in
    assert ImageInput(SIZE, crop=1.0).prepare_array(image).min() == 0
    small = np.zeros((3, 10, 10), np.uint8)
    small[:, 1:-1, 1:-1] = 255
    assert ImageInput(SIZE, crop=0.8).prepare_array(small).min() < 255


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_features_do_not_depend_on_how_many_samples_come_together(parts: list[int]) -> None:
    encoder, x = tiny(), pictures(sum(parts), 1)
    prepared = encoder.prepare(x)
    cuts = np.cumsum(parts)[:-1]
    apart = np.concatenate([encoder.encode(each) for each in np.split(prepared, cuts)])
    whole = encoder.encode(prepared)
    assert whole.shape == (len(x), FEATURES)
    assert np.array_equal(whole, apart)


def test_the_number_of_torchs_threads_changes_nothing() -> None:
    encoder, prepared = tiny(), tiny().prepare(pictures(4))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(encoder.encode(prepared))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert np.array_equal(found[0], found[1])


def test_images_of_one_color_have_features_of_zeros() -> None:
    encoder = tiny()
    for size in ((SIZE, SIZE), (8, 8), (64, 31)):
        prepared = encoder.prepare(one_color(9, size))
        assert bool((encoder.network(encoder.takes.normalize(torch.from_numpy(prepared))) != 0).any(1).all())
        assert not encoder.encode(prepared).any()
    gray = encoder.prepare(one_color(3)[:, 0])
    mixed = np.concatenate([gray, encoder.prepare(pictures(2))])
    assert encoder.encode(mixed).any(1).tolist() == [False] * 3 + [True] * 2


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 7, 9), (2, SIZE - 1, SIZE - 1)])
def test_a_single_pixel_of_another_color_counts(place: tuple[int, int, int]) -> None:
    prepared = tiny().prepare(one_color(3, (SIZE, SIZE)))
    prepared[(slice(None), *place)] ^= 1
    expected = tiny().network(tiny().takes.normalize(torch.from_numpy(prepared)))
    np.testing.assert_allclose(tiny().encode(prepared), expected.numpy(), atol=1e-5)


def test_no_samples_have_no_features() -> None:
    assert tiny().encode(tiny().prepare(pictures(0))).shape == (0, FEATURES)


@pytest.mark.parametrize(
    "x", [np.zeros((2, 3, 8, 8), np.float32), np.zeros((2, 5), np.uint8), np.zeros((2, 4, 8, 8), np.uint8)]
)
def test_what_is_no_image_is_refused(x: Array) -> None:
    with pytest.raises(DataError, match=r"takes images as bytes \(0 to 255\)"):
        tiny().prepare(x)
