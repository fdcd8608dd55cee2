"""Image files as samples, and what can be wrong with them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spacenet.data import images
from spacenet.data.inputs import read_inputs
from spacenet.data.parts import Target
from spacenet.errors import DataError, SettingsError
from tests.data.input_files import COLOR, GREY, NOTHING, image_file, read, values


@pytest.mark.parametrize("suffix", ["png", "bmp", "webp", "JPG", "jpeg"])
def test_images(tmp_path: Path, suffix: str) -> None:
    path = image_file(tmp_path / f"a.{suffix}", "RGB")
    with Image.open(path) as image:
        expected = np.asarray(image.convert("RGB"))
        grey = np.asarray(image.convert("L"))
    (chunk,) = read(path, shape=COLOR)
    assert chunk.x.dtype == np.uint8
    assert np.array_equal(chunk.x[0], expected.transpose(2, 0, 1))
    assert (list(chunk.inputs), list(chunk.rows)) == ([str(path)], [None])
    assert np.array_equal(values(read(path, shape=GREY))[0], grey)


@pytest.mark.parametrize("mode", ["P", "LA", "RGBA"])
def test_images_of_other_modes(tmp_path: Path, mode: str) -> None:
    assert values(read(image_file(tmp_path / "a.png", mode), shape=COLOR)).shape == (1, *COLOR)


def test_images_are_resized_when_asked(tmp_path: Path) -> None:
    path = image_file(tmp_path / "a.png", size=(60, 40))
    with pytest.raises(DataError, match=r"a\.png: has 60 × 40 pixels; the model takes 6 × 4\.") as error:
        read(path, shape=GREY)
    assert "--resize" not in str(error.value)
    assert "--resize" in error.value.for_cli()
    with Image.open(path) as image:
        expected = np.asarray(image.resize((6, 4), Image.Resampling.BILINEAR))
    assert np.array_equal(values(read(path, shape=GREY, resize=True))[0], expected)


def test_images_only_for_models_that_learned_from_bytes(tmp_path: Path) -> None:
    path = image_file(tmp_path / "a.png")
    with pytest.raises(DataError, match="was not trained on bytes"):
        read_inputs([str(path)], Target(GREY, 1 / 16), NOTHING)


def test_images_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bad.png"
    whole = image_file(tmp_path / "good.png", "RGB", (60, 40)).read_bytes()
    for content in (b"", b"text", whole[:40], whole[:-60], b"GIF89a" + bytes(30)):
        path.write_bytes(content)
        with pytest.raises(DataError, match="bad.png: not an image that can be read"):
            read(path, shape=GREY, resize=True)
    with pytest.raises(DataError, match="more than 8 bits per pixel"):
        read(image_file(path, "I;16"), shape=GREY)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty: has no images"):
        read(tmp_path / "empty", shape=GREY)
    monkeypatch.setattr(images, "MAX_PIXELS", 2000)
    with pytest.raises(DataError, match="too large for an image .60 × 40 pixels"):
        read(tmp_path / "good.png", shape=GREY, resize=True)


@pytest.mark.parametrize("limit", [100, 2000])  # Pillow's error, and its warning
def test_a_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError, match="bomb.png: too large for an image"):
        read(image_file(tmp_path / "bomb.png", size=(60, 40)), shape=GREY, resize=True)


def test_images_made_of_anything(tmp_path: Path) -> None:
    """Flipping any byte of an image gives an image or a DataError, never another exception."""
    path = tmp_path / "flipped.png"
    for suffix in ("png", "bmp", "webp", "jpg"):
        whole = image_file(tmp_path / f"whole.{suffix}", "RGB").read_bytes()
        for position in range(0, min(len(whole), 400), 5):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x5A]) + whole[position + 1 :])
            try:
                read(path, shape=COLOR, resize=True)
            except DataError:
                continue


def test_without_pillow_there_is_a_word_on_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = image_file(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(SettingsError, match=r'needs PIL.*pip install "spacenet-cl\[images\]"'):
        read(path, shape=GREY)
