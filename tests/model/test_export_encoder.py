"""Exported files from pixels to probabilities."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spacenet
from spacenet.cli.main import main
from spacenet.encoders import loading
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import Array, ImageInput
from spacenet.errors import SettingsError, SpacenetError
from spacenet.model.export import FORMATS, export_model
from spacenet.model.exported_part import PixelPart, random_image
from spacenet.model.model import Model
from tests.encoders.support import FEATURES, SIZE, TinyEncoder, pictures, save_exported, save_onnx, tiny

pytest.importorskip("PIL", reason="images need the extra 'images'")


@pytest.fixture(autouse=True)
def _libraries(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_own", {})
    loading._load.cache_clear()
    if "onnx" in request.node.name:
        for library in ("onnx", "onnxscript", "onnxruntime"):
            pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
        request.getfixturevalue("_operators_once")


def fitted(encoder: Any) -> Model:
    x = np.concatenate([pictures(12, label) for label in (0, 1, 2)])
    y = np.repeat(["red", "green", "blue"], 12)
    return spacenet.SpaceNetClassifier(encoder=encoder, epochs=5, hidden=(20,)).fit(x, y).model_


def images(count: int = 9) -> Array:
    rng = np.random.default_rng(3)
    return np.stack([random_image(rng, SIZE, (1, 4, 16)[row % 3]) for row in range(count)])


@pytest.mark.parametrize(
    ("kind", "to"), [("module", "onnx"), ("module", "torch"), ("pt2", "torch"), ("onnx", "onnx"), ("pt2", "onnx")]
)
def test_from_pixels_to_probabilities(kind: str, to: str, tmp_path: Path) -> None:
    made: dict[str, Callable[[], Any]] = {"module": tiny, "pt2": lambda: str(save_exported(tmp_path / "tiny.pt2"))}
    made["onnx"] = lambda: str(save_onnx(tmp_path / "tiny.onnx"))
    model = fitted(made[kind]())
    exported = export_model(model, tmp_path / "file", to)
    assert exported.max_difference < 1e-5
    answer, texts = FORMATS[to].load(tmp_path / "file")
    facts = {name: json.loads(text) for name, text in texts.items()}
    assert facts["classes"] == ["blue", "green", "red"]
    assert facts["input_shape"] == [3, SIZE, SIZE]
    assert facts["images"] == {"size": SIZE, "crop": 0.875, "interpolation": "bicubic"} | facts["images"]
    assert facts["encoder"]["name"] in ("own:tiny", "tiny.pt2", "tiny.onnx")
    assert str(tmp_path).encode() not in (tmp_path / "file").read_bytes()
    for count in (1, 9):
        expected = model.predict_proba(images(count))
        np.testing.assert_allclose(answer(images(count))["probabilities"], expected, atol=1e-5)
    assert expected.std() > 0.1, "nothing to compare"


def test_pixels_are_prepared_as_the_metadata_say(tmp_path: Path) -> None:
    from PIL import Image

    model = fitted(tiny())
    export_model(model, tmp_path / "file", "torch")
    answer, texts = FORMATS["torch"].load(tmp_path / "file")
    facts = json.loads(texts["images"])
    for size in ((60, 45), (10, 13), (16, 17)):
        photo = Image.fromarray(pictures(1, 1, size)[0].transpose(1, 2, 0))
        side = max(min(*photo.size, facts["size"]), facts["crop"] * min(photo.size))
        left, top = ((length - side) / 2 for length in photo.size)
        method = Image.Resampling[facts["interpolation"].upper()]
        small = photo.resize((facts["size"],) * 2, method, box=(left, top, left + side, top + side))
        pixels = np.asarray(small).transpose(2, 0, 1)[None]
        assert np.array_equal(pixels, tiny().prepare(pictures(1, 1, size)))
        expected = model.predict_proba(pictures(1, 1, size))
        np.testing.assert_allclose(answer(np.ascontiguousarray(pixels))["probabilities"], expected, atol=1e-5)


def test_the_head_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_exported(tmp_path / "tiny.pt2")
    x = np.concatenate([pictures(12, label) for label in (0, 1)])
    classifier = spacenet.SpaceNetClassifier(encoder=str(tmp_path / "tiny.pt2"), epochs=5, hidden=(20,))
    classifier.fit(x, [0] * 12 + [1] * 12).save(tmp_path / "model")
    (tmp_path / "tiny.pt2").unlink()
    loading._load.cache_clear()
    export = ["export", str(tmp_path / "model"), "--to", "torch", "--out", str(tmp_path / "file")]
    assert main(export) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([*export, "--without-encoder"]) == 0
    answer, texts = FORMATS["torch"].load(tmp_path / "file")
    assert json.loads(texts["input_shape"]) == [FEATURES]
    assert "images" not in texts
    assert answer(np.ones((2, FEATURES), np.float32))["probabilities"].shape == (2, 2)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"is a Python function, .*without_encoder=True"):
        export_model(fitted(lambda x: x.mean((2, 3))), tmp_path / "file", "torch")
    numbers = spacenet.SpaceNetClassifier(epochs=1).fit(np.eye(4), [0, 1, 0, 1]).model_
    with pytest.raises(SettingsError, match="the model has no encoder"):
        export_model(numbers, tmp_path / "file", "torch", without_encoder=True)
    assert not list(tmp_path.glob("file*"))


def test_an_onnx_file_goes_into_an_onnx_file_only(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="can only become part of an ONNX file, not of torch"):
        export_model(fitted(str(save_onnx(tmp_path / "tiny.onnx"))), tmp_path / "file", "torch")


class Unsteady(nn.Module):
    """Gives other features when it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = TinyEncoder()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(x)
        return found.flip(1) if torch.compiler.is_exporting() else found


def test_an_encoder_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    model = fitted(Encoder("odd", "", "odd", FEATURES, Unsteady().eval(), ImageInput(SIZE)))
    with pytest.raises(SpacenetError, match="computes something else"):
        export_model(model, tmp_path / "file", "torch")
    assert not list(tmp_path.glob("file*"))


def test_what_an_encoder_in_another_runtime_may_round_is_no_mistake() -> None:
    """A shift of features by what was measured between torch and onnxruntime moves no more than is allowed."""
    model = fitted(tiny())
    encoder = model.encoder
    assert encoder is not None
    assert encoder.images is not None
    part = PixelPart(model, nn.Identity(), None, encoder, encoder.images)
    features = part.features(images())
    step = part.rounding(features)
    assert (step >= 1e-5 * np.abs(features)).all()
    assert (step <= 1e-4 * np.abs(features).max()).all()
    assert part.rounding_effect(features, model.predict_proba) < 1e-2
