"""Models as MLflow loads them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.errors import FileError, SettingsError, SpacenetError
from spacenet.model import mlflow_model
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.mlflow_model import LoadedModel, write_mlflow
from tests.encoders.support import save_exported
from tests.model.support import blobs, model

pyfunc = pytest.importorskip("mlflow.pyfunc", reason="needs the extra 'mlflow'")
ELSEWHERE = """
import json, sys, numpy, mlflow.pyfunc
model = mlflow.pyfunc.load_model(sys.argv[1])
x = numpy.load(sys.argv[2])
answers = [model.predict(x).tolist(), model.predict(x, params={"unknown": 0.5}).tolist()]
print(json.dumps([*answers, model.predict(x, params={"method": "predict_proba"}).tolist()]))
"""


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def test_a_fresh_process_gets_the_same_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier = SpaceNetClassifier(hidden=(20, 20), epochs=2, directions=3, unknown=0.05)
    classifier.fit(*blobs(["cat", "dog", "eel"])).save(tmp_path / "model.safetensors")
    assert main(["export", str(tmp_path / "model.safetensors"), "--to", "mlflow", "--unknown", "0.05"]) == 0
    folder = tmp_path / "model-mlflow"
    assert str(folder) in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-mlflow", "model.safetensors"]
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle")]
    assert (folder / "data" / "model.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    requirements = (folder / "requirements.txt").read_text().splitlines()
    assert [line for line in requirements if line.startswith(("spacenet-cl==", "torch=="))] == requirements[1:3]
    x = np.concatenate([blobs(["cat", "dog", "eel"])[0], blobs(["other"])[0]]).astype(np.float64)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-W", "ignore", "-c", ELSEWHERE, str(folder), str(tmp_path / "x.npy")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    labels, wide, probabilities = json.loads(done.stdout.splitlines()[-1])
    assert labels == classifier.predict(x).tolist()
    assert "unknown" in labels
    assert wide == classifier.set_params(unknown=0.5).predict(x).tolist() != labels
    np.testing.assert_allclose(probabilities, classifier.predict_proba(x), atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_the_signature_says_what_a_model_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    numbers = SpaceNetClassifier(hidden=(20,), epochs=1).fit(np.arange(24).reshape(12, 2) / 24, [0, 1] * 6)
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    gray = SpaceNetClassifier(hidden=(20,), epochs=1).fit(pixels, [True, False] * 6)
    photos = SpaceNetClassifier(encoder=str(save_exported(tmp_path / "tiny.pt2")), hidden=(20,), epochs=1)
    photos.fit(np.repeat(pixels[:, None], 3, 1), ["a", "b"] * 6)
    for number, (made, kind, shape, labels) in enumerate(
        (
            (numbers, "float64", (-1, 2), "int64"),
            (gray, "uint8", (-1, 8, 8), "bool"),
            (photos, "uint8", (-1, 3, -1, -1), "str"),
        )
    ):
        folder = write_mlflow(made.model_, tmp_path / str(number))
        loaded = pyfunc.load_model(str(folder))
        (inputs,), (outputs,) = loaded.metadata.signature.inputs.inputs, loaded.metadata.signature.outputs.inputs
        assert (str(inputs.type), inputs.shape) == (kind, shape)
        assert outputs.type == np.dtype(labels)
        example = loaded.metadata.load_input_example(str(folder))
        assert loaded.predict(example).tolist() == made.predict(example).tolist()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = model()
    with pytest.raises(SettingsError, match="cannot tell unknown classes"):
        write_mlflow(learned, tmp_path / "folder", unknown=0.05)
    with pytest.raises(SettingsError, match="'score' is not possible; choose from predict, predict_proba"):
        LoadedModel(learned).predict(blobs([0])[0], {"method": "score"})
    (tmp_path / "there").mkdir()
    with pytest.raises(FileError, match="is there already"):
        write_mlflow(learned, tmp_path / "there")
    monkeypatch.setattr(mlflow_model, "_load_pyfunc", lambda path: LoadedModel(model([2, 3])))
    with pytest.raises(SpacenetError, match="does not answer like the model"):
        write_mlflow(learned, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_options_of_other_formats_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SpaceNetClassifier(hidden=(20,), epochs=1).fit(*blobs([0, 1])).save(tmp_path / "model")
    assert main(["export", str(tmp_path / "model"), "--to", "mlflow", "--quantize", "int8"]) == 2
    assert "--quantize" in capsys.readouterr().err
