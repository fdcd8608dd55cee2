"""A service on a model with an encoder: it takes images, image files and features."""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import spacenet
from spacenet.data import images as image_files
from spacenet.encoders import loading
from spacenet.serve import store
from tests.encoders.support import FEATURES, one_color, pictures, save_exported
from tests.serve.support import NPY, NPZ, Service, ended, npy, npz, service

Image = pytest.importorskip("PIL.Image", reason="images need the extra 'images'")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    loading._load.cache_clear()
    encoder = str(save_exported(tmp_path / "tiny.pt2"))
    x, y = np.concatenate([pictures(12, label) for label in (0, 1)]), np.repeat(["red", "green"], 12)
    classifier = spacenet.SpaceNetClassifier(encoder=encoder, epochs=10, hidden=(20,))
    classifier.fit(x, y).save(tmp_path / "model.safetensors")
    for each in (tmp_path / "cache" / "features").glob("*"):
        each.unlink()
    return tmp_path


@pytest.fixture
def asked(here: Path) -> Iterator[Service]:
    with service(here) as running:
        yield running


def file_of(image: np.ndarray, kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(stream, kind)
    return stream.getvalue()


def labels(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["label"] for each in answer["predictions"]]


def test_arrays_of_images_and_features(asked: Service, here: Path) -> None:
    x = np.concatenate([pictures(2, label, (30, 21)) for label in (0, 1)])
    expected = ["red", "red", "green", "green"]
    model = spacenet.load(here / "model.safetensors").model_
    assert model.encoder is not None
    features = model.encoder.encode(model.encoder.prepare(x))
    shares = model.predict_proba(features).max(1)
    for array in (x, x.transpose(0, 2, 3, 1), features):
        answer = asked.post("/predict", content=npy(array), headers=NPY).json()
        assert labels(answer) == expected
        assert [each["probability"] for each in answer["predictions"]] == shares.tolist()
    assert len(labels(asked.post("/predict", content=npy(x[:, 0]), headers=NPY).json())) == 4
    nested = asked.post("/predict", json={"inputs": features.tolist()}).json()
    assert labels(nested) == expected
    assert not list((here / "cache" / "features").glob("*")), "clients fill the cache"


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "bmp"])
def test_image_files(asked: Service, kind: str) -> None:
    content = file_of(pictures(1, 1, (50, 70))[0], kind)
    answer = asked.post("/predict?top=2", content=content, headers={"content-type": f"image/{kind}"}).json()
    assert [each["label"] for each in answer["predictions"][0]["top"]] == ["green", "red"]


def test_images_of_one_color_are_unknown(asked: Service) -> None:
    x = np.concatenate([one_color(5), pictures(12, 0)])
    for query in ("unknown=0.05", "unknown=0.001"):
        answer = asked.post(f"/predict?{query}", content=npy(x), headers=NPY).json()["predictions"]
        assert [each["typicality"] for each in answer[:5]] == [0.0] * 5
        assert all(each["unknown"] and each["label"] is None for each in answer[:5])
    assert not all(each["unknown"] for each in answer[5:])
    for kind in ("png", "jpeg"):
        content = file_of(one_color(5, (50, 70))[4], kind)
        answer = asked.post("/predict?unknown=0.05", content=content, headers={"content-type": f"image/{kind}"}).json()
        assert answer["predictions"][0]["unknown"]


def test_bad_images(asked: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    png = {"content-type": "image/png"}
    answer = asked.post("/predict", content=b"no image", headers=png)
    assert (answer.status_code, "the image: not an image that can be read" in answer.text) == (422, True)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    size = chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + size + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    answer = asked.post("/predict", content=bomb, headers=png)
    assert (answer.status_code, "too large for an image" in answer.text) == (422, True)
    monkeypatch.setattr(image_files, "MAX_PIXELS", 100)
    content = file_of(pictures(1)[0], "png")
    assert "at most 100 in all" in asked.post("/predict", content=content, headers=png).text
    answer = asked.post("/predict", content=npy(pictures(1) / 255), headers=NPY)
    assert (answer.status_code, "takes images as bytes" in answer.text) == (422, True)
    answer = asked.post("/predict", content=npy(pictures(1)[0].transpose(1, 2, 0)), headers=NPY)
    assert (answer.status_code, "for a single image give x[None]" in answer.text) == (422, True)
    monkeypatch.setattr(store, "MAX_IMAGES", 3)
    assert asked.post("/predict", content=npy(pictures(4)), headers=NPY).status_code == 413


def test_what_the_model_takes(asked: Service) -> None:
    found = asked.get("/model")
    assert found["encoder"]["name"] == "tiny.pt2"
    assert len(found["encoder"]["checksum"]) == 64
    assert found["encoder"]["problem"] is None
    assert [text.split()[0] for text in found["takes"]] == ["features", "images", "image"]
    content = asked.get("/openapi.json")["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert {"application/json", "application/x-npy", "image/png", "image/bmp"} <= set(content)
    assert "image/webp" in asked.ask("GET", "/docs").text


def test_images_are_learned(here: Path) -> None:
    with service(here, learns=True) as running:
        x, y = pictures(12, 2), np.array(["blue"] * 12)
        bad = running.post("/learn", content=npz(x=(x[:2] / 255).astype("f4"), y=y[:2]), headers=NPZ)
        assert bad.status_code == 422
        assert running.post("/learn", content=npz(x=x, y=y), headers=NPZ).status_code == 202
        assert ended(running)["error"] is None
        answer = running.post("/predict", content=npy(pictures(1, 2, (40, 40))), headers=NPY).json()
        assert labels(answer) == ["blue"]


def test_without_the_encoder_features_are_taken(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    (here / "tiny.pt2").unlink()
    loading._load.cache_clear()
    with service(here) as running:
        assert "only features are taken" in caplog.text
        found = running.get("/model")
        assert "no such file" in found["encoder"]["problem"]
        assert len(found["takes"]) == 1
        assert running.post("/predict", content=npy(np.ones((1, FEATURES))), headers=NPY).status_code == 200
        content = file_of(pictures(1)[0], "png")
        answer = running.post("/predict", content=content, headers={"content-type": "image/png"})
        assert (answer.status_code, "no encoder for image files" in answer.text) == (415, True)
