"""Image files: one as the body, several in a form, or as base64 in JSON; for models with an encoder and without."""

import base64
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spacenet
from spacenet.config.model import NetConfig, PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.checks import PIXEL_SCALE
from spacenet.encoders import loading
from spacenet.model.file import save_model
from spacenet.model.model import Model
from spacenet.serve import images, multipart, reading
from spacenet.serve.messages import Job
from tests.encoders.support import pictures, sentences, tiny, tiny_texts
from tests.model.support import model_config
from tests.serve.support import Service, service, services

Image = pytest.importorskip("PIL.Image", reason="images need the extra 'images'")
DIGITS = (
    np.random.default_rng(0).integers(0, 128, (40, 1, 8, 8)).astype(np.uint8)
    + np.arange(2).repeat(20)[:, None, None, None].astype(np.uint8) * 127
)
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def encoding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a model with an encoder."""
    folder = tmp_path_factory.mktemp("encoding")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPACENET_CACHE", str(folder / "cache"))
        patch.setattr(loading, "_own", {})
        x, y = np.concatenate([pictures(12, label) for label in (0, 1)]), np.repeat(["red", "green"], 12)
        classifier = spacenet.SpaceNetClassifier(encoder=tiny(), epochs=10, hidden=(20,))
        classifier.fit(x, y).save(folder / "model.safetensors")
        yield folder


@pytest.fixture(scope="module")
def photos(encoding: Path) -> Iterator[Service]:
    with service(encoding, max_bytes=2**20, learns=True) as it:
        yield it


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A model of small gray images, without an encoder."""
    path = tmp_path_factory.mktemp("digits") / "digits.safetensors"
    preprocessing = PreprocessingConfig(scale=PIXEL_SCALE)
    net, training = NetConfig(hidden=(30, 30)), TrainingConfig(epochs=8, batch_size=8, learning_rate=0.1)
    learned = Model(model_config(net=net, training=training, preprocessing=preprocessing), (1, 8, 8))
    learned.learn(DIGITS, np.repeat([3, 7], 20))
    save_model(path, learned)
    with services({"digits": path}, max_bytes=2**20, learns=True) as it:
        yield it


def png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)).save(stream, "PNG")
    return stream.getvalue()


def form(*fields: tuple[str, bytes]) -> dict[str, Any]:
    return {"files": [(name, (f"{number}.png", content)) for number, (name, content) in enumerate(fields)]}


def labels(answer: Any) -> list[Any]:
    assert answer.status_code == 200, answer.text
    return [each["label"] for each in answer.json()["predictions"]]


def as_base64(*contents: bytes, before: str = "") -> list[str]:
    return [before + base64.b64encode(content).decode() for content in contents]


def test_several_images_in_a_form_or_as_base64(photos: Service) -> None:
    contents = [png(pictures(1, label, (30 + label, 21))[0]) for label in (0, 1, 1)]
    alone = photos.post("/predict", content=contents[0], headers={"content-type": "image/png"})
    several = photos.post("/predict?top=2", **form(*(("any", content) for content in contents)))
    assert labels(several) == ["red", "green", "green"]
    assert labels(alone) == ["red"]
    assert len(several.json()["predictions"][0]["top"]) == 2
    for before in ("", "data:image/png;base64,"):
        coded = photos.post("/predict", json={"images": as_base64(*contents, before=before), "top": 2})
        assert coded.json() == several.json()


def test_models_of_images_take_files_of_their_size(digits: Service) -> None:
    expected = digits.store.current.model.predict(DIGITS[[0, 30]])
    contents = [png(DIGITS[0]), png(DIGITS[30])]
    assert labels(digits.post("/predict", **form(*(("x", content) for content in contents)))) == expected
    assert labels(digits.post("/predict", json={"images": as_base64(*contents)})) == expected
    large = png(DIGITS[0].repeat(2, 1).repeat(2, 2))
    refused = digits.post("/predict", **form(("x", large)))
    assert (refused.status_code, refused.json()["error"]) == (
        422,
        "0.png: has 16 × 16 pixels; the model takes 8 × 8. Add ?resize=true to have images resized.",
    )
    assert labels(digits.post("/predict?resize=true", **form(("x", large)))) == expected[:1]
    assert "resize: 'maybe' is neither" in digits.post("/predict?resize=maybe", **form(("x", large))).text
    assert "of 8 × 8 pixels" in digits.get("/model")["takes"][1]


def test_image_files_in_tensors(digits: Service) -> None:
    content = png(DIGITS[30])
    given = {"name": "input", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": len(content) + 4}}
    text = str({"inputs": [given]}).replace("'", '"').encode()
    body = text + struct.pack("<I", len(content)) + content
    answer = digits.post(
        "/v2/models/digits/infer", content=body, headers={"Inference-Header-Content-Length": str(len(text))}
    )
    assert answer.json()["outputs"][0]["data"] == digits.store.current.model.predict(DIGITS[30:31])


def taught(it: Service, monkeypatch: pytest.MonkeyPatch, **request: Any) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """What a service answers to a task, and the samples and labels that it would learn."""
    found = [np.zeros(0), np.zeros(0)]
    assert it.learning is not None
    last = it.learning.last

    def submit(x: np.ndarray, y: np.ndarray) -> Job:
        found[:] = x, y
        return last

    monkeypatch.setattr(it.learning, "submit_learn", submit)
    return it.post("/learn", **request), (found[0], found[1])


def test_names_of_fields_are_labels(photos: Service, digits: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    content = png(pictures(1)[0])
    answer, (x, y) = taught(photos, monkeypatch, **form(("blue", content), ("blue", content), ("grün", content)))
    assert (answer.status_code, len(x), y.tolist()) == (202, 3, ["blue", "blue", "grün"])
    small = png(DIGITS[0])
    _, (x, y) = taught(digits, monkeypatch, **form(("8", small), ("3", small)))
    assert (x.shape, y.tolist()) == ((2, 1, 8, 8), [8, 3]), "numbers where the model's classes are numbers"
    np.testing.assert_array_equal(x[0], DIGITS[0])


def test_base64_is_learned(digits: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    coded = as_base64(png(DIGITS[0]), png(DIGITS[1]))
    answer, (x, y) = taught(digits, monkeypatch, json={"images": coded, "labels": [8, 9]})
    assert (answer.status_code, y.tolist()) == (202, [8, 9])
    np.testing.assert_array_equal(x, DIGITS[:2])
    answer, _ = taught(digits, monkeypatch, json={"images": coded, "labels": [8]})
    assert (answer.status_code, "2 inputs and 1 labels" in answer.text) == (422, True)


BOUNDARY = {"content-type": "multipart/form-data; boundary=b"}
FIELD = b'--b\r\ncontent-disposition: form-data; name="x"; filename="x.png"\r\n\r\n'
BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "no image": (form(("x", b"no image")), 422, "0.png: not an image that can be read"),
    "no files": ({"content": b"--b--\r\n", "headers": BOUNDARY}, 422, "no images"),
    "cut off": ({"content": FIELD + b"abc", "headers": BOUNDARY}, 400, "cut off"),
    "no form": ({"content": b"abc" * 100, "headers": BOUNDARY}, 400, "damaged"),
    "no boundary": ({"content": FIELD, "headers": {"content-type": "multipart/form-data"}}, 400, "boundary"),
    "long headers": (
        {"content": b"--b\r\nx: " + b"y" * 5000 + b"\r\n\r\n\r\n--b--", "headers": BOUNDARY},
        (400, 422),  # type: ignore[dict-item]
        "",
    ),
    "a text field": (
        {"content": b'--b\r\ncontent-disposition: form-data; name="top"\r\n\r\n3\r\n--b--\r\n', "headers": BOUNDARY},
        422,
        "'top' of the form is no file",
    ),
    "no base64": ({"json": {"images": ["%%%"]}}, 422, "images[0] is not base64"),
    "base64 that is no text": ({"json": {"images": ["ä"]}}, 422, "images[0] is not base64"),
    "base64 of no image": ({"json": {"images": as_base64(b"GIF89a")}}, 422, "images[0]: not an image"),
    "numbers": ({"json": {"images": [1]}}, 422, "images.0"),
    "both": ({"json": {"images": [], "inputs": []}}, 422, "either inputs or images"),
    "neither": ({"json": {}}, 422, "either inputs or images"),
    "empty": ({"json": {"images": []}}, 422, "no images"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_bad_images_are_refused_with_a_reason(
    digits: Service, name: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    request, status, words = BAD[name]
    if path == "/learn" and "json" in request:
        request = {"json": {**request["json"], "labels": [0]}}
    answer = digits.post(path, **request)
    assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
    assert words in answer.json()["error"]
    assert not caplog.records, "clients could fill the log"


@given(st.binary(max_size=60), st.integers(0, 400))
@settings(max_examples=60)
def test_no_form_makes_it_fail(digits: Service, noise: bytes, at: int) -> None:
    good = FIELD + png(DIGITS[0]) + b"\r\n--b--\r\n"
    answer = digits.post("/predict", content=good[:at] + noise + good[at + len(noise) :], headers=BOUNDARY)
    assert answer.status_code < 500, answer.text


def bomb(side: int) -> bytes:
    """A small file that says it is a large image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    size = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + size + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def test_large_images_are_refused(photos: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = photos.post("/predict", **form(("x", bomb(30_000))))
    assert (answer.status_code, "too large for an image" in answer.text) == (422, True)
    monkeypatch.setattr(images, "MAX_REQUEST_PIXELS", 1000)
    content = png(pictures(1, 0, (20, 24))[0])
    assert photos.post("/predict", **form(("x", content), ("x", content))).status_code == 200
    answer = photos.post("/predict", **form(*[("x", content)] * 3))
    assert (answer.status_code, "more than 1,000 pixels" in answer.text) == (413, True)


def test_many_images_are_refused(photos: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    content = png(pictures(1)[0])
    monkeypatch.setattr(reading, "MAX_IMAGES", 2)
    assert photos.post("/predict", **form(*[("x", content)] * 2)).status_code == 200
    assert photos.post("/predict", **form(*[("x", content)] * 3)).status_code == 413
    assert photos.post("/predict", json={"images": as_base64(*[content] * 3)}).status_code == 413
    monkeypatch.setattr(multipart, "MAX_PARTS", 2)
    assert "more than 2 fields" in photos.post("/learn", **form(*[("x", content)] * 3)).text


def test_texts_for_an_encoder_of_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_own", {})
    path = tmp_path / "model.safetensors"
    classifier = spacenet.SpaceNetClassifier(encoder=tiny_texts(), epochs=10, hidden=(20,))
    classifier.partial_fit(*sentences(["weather", "food"])).save(path)
    texts, expected = sentences(["weather", "food"])
    with services({"texts": path}, learns=True) as it:
        assert labels(it.post("/predict", json={"inputs": texts})) == expected.tolist()
        given = {"name": "input", "shape": [len(texts)], "datatype": "BYTES", "data": texts}
        answer = it.post("/v2/models/texts/infer", json={"inputs": [given]}).json()
        assert answer["outputs"][0]["data"] == expected.tolist()
        assert it.get("/v2/models/texts")["inputs"] == [{"name": "input", "datatype": "BYTES", "shape": [-1]}]
        assert it.get("/model")["takes"][1] == "texts, as JSON"
        answer, (x, _) = taught(it, monkeypatch, json={"inputs": ["eel", "sea"], "labels": ["sea", "sea"]})
        assert (answer.status_code, x.tolist(), x.dtype.kind) == (202, ["eel", "sea"], "U")
        nothing = {"name": "input", "shape": [0], "datatype": "BYTES", "data": []}
        assert it.post("/v2/models/texts/infer", json={"inputs": [nothing]}).status_code == 422
        for bad in (["a", 1], ["a" * 100_001]):
            assert it.post("/predict", json={"inputs": bad}).status_code in (413, 422)
