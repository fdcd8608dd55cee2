"""Exported files tell which samples are like no class, as the model does."""

import json
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.errors import SettingsError, SpacenetError
from spacenet.model import export as files
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.exported_part import HeadPart
from spacenet.model.file import save_model
from spacenet.model.model import Model
from tests.encoders.support import FEATURES, centered, one_color, pictures, save_onnx, tiny
from tests.model.support import blobs, density_model, model

RATE = 0.05


@pytest.fixture(scope="module")
def learned() -> Model:
    """A table: values are cut off, and tasks of several sizes have outputs in common."""
    classifier = SpaceNetClassifier(hidden=(20, 20), epochs=2, directions=3)
    return classifier.partial_fit(*blobs(["cat", "dog"])).partial_fit(*blobs(["dog", "eel", "fox"])).model_


def exported(learned: Model, path: Path, to: str, x: Array) -> dict[str, Array]:
    done = files.export_model(learned, path, to, unknown=RATE)
    assert done.unknown == RATE
    assert done.typicality_difference == pytest.approx(0, abs=1e-4)
    return files.FORMATS[to].load(path)[0](x)


def compare(found: dict[str, Array], learned: Model, x: Array) -> None:
    typicality = learned.typicality(x)
    np.testing.assert_allclose(found["typicality"], typicality, atol=5e-4)
    assert found["unknown"].dtype == bool
    clear = abs(typicality - RATE) > 5e-4
    assert (found["unknown"] == (typicality < RATE))[clear].all()
    possible = np.isfinite(x).reshape(len(x), -1).all(1) & (abs(x).reshape(len(x), -1).max(1) <= 1e15)
    np.testing.assert_allclose(found["probabilities"][possible], learned.predict_proba(x[possible]), atol=1e-4)


def test_an_onnx_file_says_what_is_unknown(
    learned: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
    request.getfixturevalue("_operators_once")
    save_model(tmp_path / "model", learned)
    assert main(["export", str(tmp_path / "model"), "--to", "onnx", "--unknown", "0.05"]) == 0
    assert "Unknown: a typicality below 0.05" in capsys.readouterr().out
    answer, facts = files.FORMATS["onnx"].load(tmp_path / "model.onnx")
    assert json.loads(facts["unknown"]) == RATE
    known, strange = blobs(["cat", "dog", "eel", "fox"])[0], blobs(["other"])[0]
    assert 0.0 < learned.typicality(known).mean() < 1.0, "nothing to compare"
    for x in (known, known[:1], strange):
        compare(answer(x), learned, x)
    far = np.repeat(known[:1], 8, 0)
    far[np.arange(8), np.arange(8)] = (1e4, -1e9, 1e15, 1e30, -3e38, np.inf, -np.inf, np.nan)
    found = answer(far)
    assert found["unknown"].all()
    assert not found["typicality"].any()
    assert not answer(known)["unknown"].all()


@pytest.mark.parametrize("kind", ["edges", "features"])
def test_a_torch_file_of_images(kind: str, tmp_path: Path) -> None:
    made = density_model(kind)
    x = blobs([0, 1, "cat", "dog"], shape=made.input_shape)[0]
    assert 0.0 < made.typicality(x).mean() < 1.0, "nothing to compare"
    gray = np.linspace(-5, 5, 5)[:, None, None] * np.ones((1, 8, 8))
    noise = np.random.default_rng(0).uniform(-9, 9, (5, 8, 8))
    strange = np.concatenate([gray, noise, np.full((2, 8, 8), 1e15)]).astype(np.float32).reshape(-1, *made.input_shape)
    found = exported(made, tmp_path / "file", "torch", np.concatenate([x, strange]))
    compare(found, made, np.concatenate([x, strange]))
    if kind == "edges":
        assert found["unknown"][len(x) :].all()


def photo_model(encoder: Encoder | str) -> Model:
    x = np.concatenate([pictures(12, label) for label in (0, 1)])
    classifier = SpaceNetClassifier(encoder=encoder, epochs=2, hidden=(20,), pooled_covariance=False)
    return classifier.fit(x, np.repeat(["red", "green"], 12)).model_


def test_from_pixels(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    x, made = np.concatenate([pictures(12, label) for label in (0, 1)]), photo_model(tiny())
    assert made.encoder is not None
    pixels = made.encoder.prepare(x)
    found, features = exported(made, tmp_path / "file", "torch", pixels), made.encoder.encode(pixels)
    assert 0.0 < made.typicality(features).mean() < 1.0, "nothing to compare"
    compare(found, made, features)


@pytest.mark.parametrize("kind", ["module to torch", "module to onnx", "onnx to onnx"])
def test_images_of_one_color_are_unknown(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    of, _, to = kind.split()
    if to == "onnx":
        for library in ("onnx", "onnxscript", "onnxruntime"):
            pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
        request.getfixturevalue("_operators_once")
    made = photo_model(str(save_onnx(tmp_path / "tiny.onnx")) if of == "onnx" else centered())
    assert made.encoder is not None
    pixels = made.encoder.prepare(np.concatenate([one_color(9), pictures(12, 0)]))
    pixels[8, 2, 5, 5] ^= 1  # a single pixel of another color
    found, features = exported(made, tmp_path / "file", to, pixels), made.encoder.encode(pixels)
    assert found["unknown"][:8].all()
    assert not found["typicality"][:8].any()
    assert features.any(1).tolist() == [False] * 8 + [True] * 13
    compare(found, made, features)


def test_features_of_zeros_are_unknown_without_the_encoder_too(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    made, path = photo_model(centered()), tmp_path / "file"
    assert made.typicality(np.full((1, FEATURES), 1e-12))[0] > RATE, "zeros are unknown anyway"
    files.export_model(made, path, "torch", unknown=RATE, without_encoder=True)
    answer, zeros = files.FORMATS["torch"].load(path)[0], np.zeros((3, FEATURES), np.float32)
    assert answer(zeros)["unknown"].all()
    assert not answer(zeros)["typicality"].any()


def test_a_file_that_does_not_call_images_of_one_color_unknown_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rounding may change does not excuse it: their features are exactly 0."""
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    opened = files.FORMATS["torch"].load

    def load(path: Path) -> files.Loaded:
        answer, facts = opened(path)

        def changed(x: Array) -> dict[str, Array]:
            flat = (x == x[:, :, :1, :1]).all((1, 2, 3))
            return (found := answer(x)) | {"typicality": np.where(flat, 0.01, found["typicality"])}

        return changed, facts

    monkeypatch.setattr(files.FORMATS["torch"], "load", load)
    monkeypatch.setattr(HeadPart, "rounding_effect", lambda *given: 1.0)
    with pytest.raises(SpacenetError, match=r"typicalities differ by up to 0\.01"):
        files.export_model(photo_model(tiny()), tmp_path / "file", "torch", unknown=RATE)
    assert not list(tmp_path.iterdir())


def test_a_file_that_rates_otherwise_is_not_written(
    learned: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = files.FORMATS["torch"].load
    for name, change, what in (
        ("typicality", lambda typicality: typicality + 0.01, "typicalities differ by up to 0.01"),
        ("unknown", lambda unknown: ~unknown, "decides otherwise what is unknown"),
    ):

        def load(path: Path, name: str = name, change: object = change) -> files.Loaded:
            answer, facts = opened(path)
            return lambda x: answer(x) | {name: change(answer(x)[name])}, facts  # type: ignore[operator]

        monkeypatch.setattr(files.FORMATS["torch"], "load", load)
        with pytest.raises(SpacenetError, match=what):
            files.export_model(learned, tmp_path / "file", "torch", unknown=RATE)
    assert not list(tmp_path.iterdir())


def test_what_cannot_tell_unknown_samples_says_so(learned: Model, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="spacenet cannot tell unknown classes; choose spacenet-density"):
        files.export_model(model(), tmp_path / "file", "torch", unknown=RATE)
    with pytest.raises(SettingsError, match="between 0 and 1"):
        files.export_model(learned, tmp_path / "file", "torch", unknown=5)
    assert not list(tmp_path.iterdir())
