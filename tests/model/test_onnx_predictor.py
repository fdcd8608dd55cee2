"""The loader of exported ONNX files, on its own: neither torch nor spacenet can be imported beside it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.file import save_model
from tests.encoders.support import pictures, tiny
from tests.model.support import blobs, model

for library in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
pytestmark = pytest.mark.usefixtures("_operators_once")

ALONE = """
import sys
sys.modules["torch"] = sys.modules["spacenet"] = sys.modules["onnx"] = None
import json, numpy
from onnx_predictor import OnnxPredictor
predictor = OnnxPredictor("model.onnx", threads=1, batch_size=7)
x = numpy.load("x.npy")
print(json.dumps([predictor.predict(x), predictor.predict_proba(x).tolist(), predictor.unknown(x).tolist(),
    predictor.typicality(x).tolist(), predictor.rate, predictor.predict(x[:0]), predictor.predict(x, "strange")]))
assert not {"torch", "spacenet", "onnx"} & {name for name, module in sys.modules.items() if module is not None}
"""


def test_it_answers_like_the_model_without_torch_and_spacenet(tmp_path: Path) -> None:
    classifier = SpaceNetClassifier(hidden=(20, 20), epochs=2, directions=3, unknown=0.05)
    classifier.fit(*blobs(["cat", "dog", "eel"])).save(tmp_path / "model")
    out = ["--out", str(tmp_path / "model.onnx")]
    assert main(["export", str(tmp_path / "model"), "--to", "onnx", "--unknown", "0.05", "--with-loader", *out]) == 0
    x = np.concatenate([blobs(["cat", "dog", "eel"], per_class=6)[0], blobs(["other"], per_class=4)[0]])
    strange = np.concatenate([x, [[np.nan] * 8, [1e30] * 8]])
    np.save(tmp_path / "x.npy", strange)
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 0, done.stderr
    labels, probabilities, unknown, typicality, rate, none, named = json.loads(done.stdout)
    assert labels == [*classifier.predict(x).tolist(), "unknown", "unknown"]
    assert {"unknown", "cat", "dog", "eel"} == set(labels)
    np.testing.assert_allclose(probabilities[: len(x)], classifier.predict_proba(x), atol=1e-4)
    np.testing.assert_allclose(typicality[: len(x)], classifier.score_samples(x), atol=1e-4)
    assert unknown == [label == "unknown" for label in labels]
    assert (rate, none) == (0.05, [])
    assert named == ["strange" if label == "unknown" else label for label in labels]


def test_mistakes_are_said(tmp_path: Path) -> None:
    from spacenet.model.onnx_predictor import OnnxPredictor

    save_model(tmp_path / "model", model([True, False], [2, 3]))
    assert main(["export", str(tmp_path / "model"), "--to", "onnx"]) == 0
    predictor = OnnxPredictor(tmp_path / "model.onnx")
    x = blobs([0])[0]
    assert json.dumps(predictor.classes) == "[false, true, 2, 3]"
    assert set(map(type, predictor.predict(x))) <= {bool, int}
    assert predictor.predict(x.astype(np.float64)) == predictor.predict(x)
    for wrong, message in ((x[0], "takes"), (x[:, :5], "takes"), (x.astype(str), "numbers are needed")):
        with pytest.raises(ValueError, match=message):
            predictor.predict(wrong)
    with pytest.raises(ValueError, match="spacenet export --unknown"):
        predictor.unknown(x)
    with pytest.raises(ValueError, match="takes no images"):
        predictor.prepare_image(None)


def test_images_are_prepared_as_in_python(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="images need the extra 'images'")
    from spacenet.model.export import export_model
    from spacenet.model.onnx_predictor import OnnxPredictor

    x = np.concatenate([pictures(12, label, (30, 21)) for label in (0, 1)])
    classifier = SpaceNetClassifier(encoder=tiny(), epochs=2, hidden=(20,), unknown=0.05, pooled_covariance=False)
    classifier.fit(x, np.repeat([7, 9], 12))
    export_model(classifier.model_, tmp_path / "model.onnx", "onnx", unknown=0.05)
    predictor = OnnxPredictor(tmp_path / "model.onnx")
    prepared = np.stack([predictor.prepare_image(image.fromarray(each.transpose(1, 2, 0))) for each in x])
    assert np.array_equal(prepared, tiny().prepare(x))
    assert predictor.predict(prepared) == classifier.predict(x).tolist()
    with pytest.raises(ValueError, match="takes images as bytes"):
        predictor.predict(prepared / 255)
    with pytest.raises(ValueError, match="9 is one of the classes"):
        predictor.predict(prepared, unknown_label=9)


def test_the_loader_goes_beside_an_onnx_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "onnx_predictor.py", model())
    path = str(tmp_path / "onnx_predictor.py")
    assert main(["export", path, "--to", "torch", "--with-loader"]) == 2
    assert "--with-loader" in capsys.readouterr().err
    assert main(["export", path, "--to", "onnx", "--with-loader"]) == 2
    assert "is what is read" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["onnx_predictor.py"]
