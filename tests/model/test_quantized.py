"""ONNX files with weights in 8 bits."""

import re
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.config.stream import DataConfig
from spacenet.data.sources import read_for_evaluation
from spacenet.errors import DataError, SettingsError, SpacenetError
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.export import FORMATS, export_model
from spacenet.model.exported_part import find_target
from spacenet.model.file import save_model
from tests.encoders.support import one_color, pictures, tiny
from tests.model.support import blobs, density_model, model

for library in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
pytestmark = pytest.mark.usefixtures("_operators_once")


def test_weights_are_rounded_to_8_bits(tmp_path: Path) -> None:
    learned = density_model("edges", directions=8, sharpness=0.01)
    x = blobs([0, 1, "cat", "dog"], shape=learned.input_shape)[0]
    labels = np.array([0] * 20 + [1] * 20 + ["cat"] * 20 + ["new"] * 20, dtype=object)
    done = export_model(learned, tmp_path / "model.onnx", "onnx", unknown=0.05, quantize="int8", data=(x, labels))
    found = done.quantized
    assert found is not None
    assert done.bytes == (tmp_path / "model.onnx").stat().st_size < 0.5 * found.bytes_before
    answer = FORMATS["onnx"].load(tmp_path / "model.onnx")[0](x)
    expected, classes = learned.predict_proba(x), learned.classes
    assert 1e-5 < found.max_difference < 0.5, "it would be 0 where nothing was quantized"
    np.testing.assert_allclose(answer["probabilities"], expected, atol=0.1)
    right = np.array([classes.index(label) if label in classes else -1 for label in labels.tolist()])
    assert found.samples == 60
    assert found.accuracy_before == pytest.approx(100 * (expected.argmax(1) == right)[:60].mean())
    assert found.accuracy == pytest.approx(100 * (answer["probabilities"].argmax(1) == right)[:60].mean())
    assert found.different_labels == (answer["probabilities"].argmax(1) != expected.argmax(1))[:60].sum()
    assert (answer["unknown"] == (learned.typicality(x) < 0.05)).mean() > 0.9


def test_the_command_prints_size_and_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learned = density_model("edges", [0, 1], [2, 3])
    save_model(tmp_path / "model", learned)
    x, y = blobs([0, 1, 2, 3], shape=learned.input_shape)
    np.savez(tmp_path / "test.npz", x=x, y=y)
    export = ["export", str(tmp_path / "model"), "--to", "onnx", "--quantize", "int8"]
    assert main([*export, "--data", str(tmp_path / "test.npz")]) == 0
    assert re.search(
        r"Weights in 8 bits: .* instead of .*\nOn 80 samples with labels: accuracy", capsys.readouterr().out
    )
    assert main(export) == 0
    assert "--data measures the accuracy" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "model"), "--to", "onnx", "--data", str(tmp_path / "test.npz")]) == 2
    assert "--quantize" in capsys.readouterr().err


def test_an_encoder_is_quantized_with_the_head(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="images need the extra 'images'")
    x = np.concatenate([pictures(12, label) for label in (0, 1)])
    names = np.repeat(["red", "green"], 12)
    classifier = SpaceNetClassifier(encoder=tiny(), epochs=2, hidden=(20,)).fit(x, names)
    for number, (each, name) in enumerate(zip(x, names, strict=True)):
        (tmp_path / "photos" / name).mkdir(parents=True, exist_ok=True)
        image.fromarray(each.transpose(1, 2, 0)).save(tmp_path / "photos" / name / f"{number}.png")
    data = read_for_evaluation([tmp_path / "photos"], DataConfig(), find_target(classifier.model_, False))
    done = export_model(classifier.model_, tmp_path / "file", "onnx", quantize="int8", data=data[:2])
    assert done.quantized is not None
    assert done.quantized.samples == 24
    assert done.quantized.accuracy_before == 100 * classifier.score(x, names)
    assert done.quantized.accuracy == pytest.approx(done.quantized.accuracy_before, abs=20)
    assert done.bytes < done.quantized.bytes_before


def test_images_of_one_color_stay_images_for_a_file_that_takes_them() -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    x = np.concatenate([pictures(12, label) for label in (0, 1)])
    fitted = SpaceNetClassifier(encoder=tiny(), epochs=1, hidden=(20,)).fit(x, np.repeat(["red", "green"], 12))
    encoder, colors = find_target(fitted.model_, False).encoder, one_color(4)
    assert encoder is not None
    assert encoder.encode(encoder.prepare(colors)).tolist() == tiny().prepare(colors).reshape(4, -1).tolist()


def test_what_cannot_be_quantized_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is for ONNX files, not for torch"):
        export_model(model(), tmp_path / "file", "torch", quantize="int8")
    small = SpaceNetClassifier(hidden=(4, 4), epochs=1, directions=2).fit(*blobs([0, 1])).model_
    with pytest.raises(SpacenetError, match="nothing can be quantized"):
        export_model(small, tmp_path / "file", "onnx", quantize="int8")
    data, learned = (np.ones((1, 8, 8)), np.array([9])), density_model("edges")
    with pytest.raises(DataError, match="no sample with a label that the model knows"):
        export_model(learned, tmp_path / "file", "onnx", quantize="int8", data=data)
    assert not list(tmp_path.iterdir())
