"""Photos by way of an encoder: a small one in place of the large."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from spacenet.encoders import loading
from tests.encoders.support import FEATURES, pictures, save_exported
from tests.studio.support import Studio, studio, to_png, wait_until

Image = pytest.importorskip("PIL.Image", reason="the studio needs the extra 'studio'")


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    loading._load.cache_clear()
    monkeypatch.setattr("spacenet.studio.starting.ENCODER", str(save_exported(tmp_path / "tiny.pt2")))
    (tmp_path / "studio").mkdir()
    with studio(tmp_path / "studio") as it:
        assert it.post("/studio/start", json={"start": "photos"}).json()["kind"] == "photos"
        yield it


def photo(label: int, row: int) -> bytes:
    return to_png(Image.fromarray(pictures(row + 1, label)[row].transpose(1, 2, 0)))


def test_photos_are_kept_as_features_until_they_are_learned(photos: Studio, tmp_path: Path) -> None:
    for label, name in enumerate(("red", "green")):
        for row in range(10):
            assert photos.add(name, photo(label, row)).status_code == 201
    assert all(each.picture.sample.shape == (FEATURES,) for each in photos.session.examples)
    shown = photos.ask("GET", "/studio/examples/1").content
    assert Image.open(io.BytesIO(shown)).size == (16, 16)
    answer = photos.post("/studio/learn")
    data = next(iter(photos.session.folder.glob(".*/data.npz")))
    with np.load(data) as arrays:
        assert (arrays["x"].shape, arrays["x"].dtype) == ((16, FEATURES), np.float32)
    state = photos.done(answer)
    assert [each["after"] for each in state["classes"]] == [{"right": 2, "of": 2}] * 2
    assert wait_until(lambda: not data.parent.exists())
    assert not (tmp_path / "cache" / "features").exists(), "features of photos stay in the cache"
    pixels = pictures(10, 0)[0]
    for path in (tmp_path / "studio").rglob("*"):
        assert path.is_dir() or pixels[0, 5].tobytes() not in path.read_bytes()
    assert photos.answer(photo(1, 20))["classes"][0]["label"] == "green"
    assert [each.shape for each in photos.session.held_out.samples.values()] == [(2, FEATURES)] * 2


def test_a_single_photo_of_a_class_is_too_few(photos: Studio) -> None:
    photos.add("red", photo(0, 0))
    answer = photos.post("/studio/learn")
    assert (answer.status_code, "single example" in answer.json()["error"]) == (422, True)


def test_examples_are_deleted_though_no_page_asks(photos: Studio) -> None:
    for row in range(3):
        photos.add("red", photo(0, row))
    assert photos.post("/studio/learn").status_code == 202
    assert wait_until(lambda: not len(photos.session.examples))
