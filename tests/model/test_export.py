"""Exported files compute what the model computes, without spacenet; one that does not is never written."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from spacenet import __version__
from spacenet.cli.main import main
from spacenet.config.model import NetConfig, PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.preprocessing import Array
from spacenet.errors import SettingsError, SpacenetError
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model import export as files
from spacenet.model.file import load_model, save_model
from spacenet.model.model import Model
from spacenet.model.packed_network import PackedNetwork
from spacenet.space.pack import Pack
from tests.model.support import DENSITY_CASES, blobs, density_model, model, model_config, new_model
from tests.warm import start

BOTH = pytest.mark.parametrize("to", ["onnx", "torch"])
NET_CASES = [
    ("small-cnn", (8, 8, 10, 10, 20), (8, 8), {"selected": (5,), "reserved": (2,), "connections": (0.2,)}),
    ("wrn-10-1", (), (3, 8, 8), {"selected": (0, 12, 16, 24), "reserved": (0, 2, 4, 6), "connections": (0.05,)}),
]


@pytest.fixture(autouse=True)
def _libraries(request: pytest.FixtureRequest) -> None:
    if "onnx" in request.node.name:
        for library in ("onnx", "onnxscript", "onnxruntime"):
            pytest.importorskip(library, reason="writing ONNX needs the extra 'export'")
        request.getfixturevalue("_operators_once")


def animals() -> Model:
    return model(["cat", "dog"], ["owl", "fox"])


def answers(path: Path, to: str, x: Array) -> Array:
    return files.FORMATS[to].load(path)[0](x)["probabilities"]


def samples(count: int, *shape: int) -> Array:
    return (3 * np.random.default_rng(1).normal(size=(count, *shape))).astype(np.float32)


@BOTH
def test_the_file_answers_like_the_model_at_any_batch_size(to: str, tmp_path: Path) -> None:
    learned = model(["cat", "dog"], ["dog", "fox"])  # one label has two outputs, and one probability
    exported = files.export_model(learned, tmp_path / "model", to)
    assert exported.max_difference < 1e-5
    assert exported.bytes == (tmp_path / "model").stat().st_size
    assert [(layer.name, layer.units) for layer in exported.layers] == [("hidden1", 30), ("hidden2", 30)]
    assert all(0 < layer.packed < 30 for layer in exported.layers)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert str(Path(files.__file__).parent).encode() not in (tmp_path / "model").read_bytes()
    answer, facts = files.FORMATS[to].load(tmp_path / "model")
    assert {name: json.loads(fact) for name, fact in facts.items()} == {
        "classes": ["cat", "dog", "fox"],
        "input_shape": [8],
        "tasks": 2,
        "spacenet": __version__,
    }
    for count in (1, 7, 1000):
        found, expected = answer(samples(count, 8))["probabilities"], learned.predict_proba(samples(count, 8))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    assert expected.shape == (1000, 3)
    assert expected.std() > 0.1, "nothing to compare"


def test_unused_units_are_not_in_the_file(tmp_path: Path) -> None:
    learned = model()
    before = files.export_model(learned, tmp_path / "model", "torch").bytes
    for layer in ("hidden1", "hidden2"):
        learned.method.ledger.grow(layer, 10_000)
    exported = files.export_model(learned, tmp_path / "model", "torch")
    assert exported.layers[0].units == 10_030
    assert exported.bytes == before


def test_labels_stay_what_they_are(tmp_path: Path) -> None:
    files.export_model(model([True, False], [2, 3], ["wörd", "20"]), tmp_path / "model", "torch")
    _, facts = files.FORMATS["torch"].load(tmp_path / "model")
    assert json.dumps(json.loads(facts["classes"])) == json.dumps([False, True, 2, 3, "20", "wörd"])


@pytest.mark.parametrize("to", ["onnx"])
def test_a_model_of_bytes_takes_values_from_0_to_255(to: str, tmp_path: Path) -> None:
    learned = new_model(preprocessing=PreprocessingConfig(1 / 255, centering=0.7, standardize="features"))
    x, y = blobs([0, 1])
    learned.learn(np.clip(128 + 20 * x, 0, 255).astype(np.uint8), y)
    files.export_model(learned, tmp_path / "model", to)
    raw = np.random.default_rng(0).integers(0, 256, (30, 8), dtype=np.uint8)
    expected = learned.predict_proba(raw)
    np.testing.assert_allclose(answers(tmp_path / "model", to, raw.astype(np.float32)), expected, atol=1e-5)
    assert expected.std() > 0.1, "nothing to compare"


@pytest.mark.parametrize(
    ("net", "hidden", "shape", "space", "to"),
    [(*NET_CASES[0], "torch"), *((*case, "onnx") for case in NET_CASES)],
    ids=["small-cnn-torch", *(f"{case[0]}-onnx" for case in NET_CASES)],
)
def test_networks_of_feature_maps(
    to: str, net: str, hidden: tuple[int, ...], shape: tuple[int, ...], space: Any, tmp_path: Path
) -> None:
    training = TrainingConfig(epochs=1, batch_size=8, learning_rate=0.1)
    learned = Model(model_config(net=NetConfig(net, hidden), training=training, **space), shape)
    for task in ([0, 1], [2, 3]):
        learned.learn(*blobs(task, 8, shape))
    assert files.export_model(learned, tmp_path / "model", to).max_difference < 1e-5
    for count in (1, 5):
        x = samples(count, *shape)
        np.testing.assert_allclose(answers(tmp_path / "model", to, x), learned.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize(("kind", "to"), [("features", "torch"), *((kind, "onnx") for kind in DENSITY_CASES)])
def test_class_statistics_are_exported_with_the_network(kind: str, to: str, tmp_path: Path) -> None:
    # Few features count little here, so that probabilities lie between 0 and 1 and there is something to compare.
    learned = density_model(kind, ["cat", "dog"], ["dog", "fox"], sharpness=0.01)
    exported = files.export_model(learned, tmp_path / "model", to)
    assert exported.max_difference < files.MAX_DIFFERENCE
    assert [layer.packed for layer in exported.layers] == [
        len(cast(SparseMethod, learned.method).pack.units[layer.name]) for layer in exported.layers
    ]
    shape = learned.input_shape
    for x in (samples(1, *shape), samples(5, *shape), np.zeros((2, *shape), np.float32)):
        np.testing.assert_allclose(answers(tmp_path / "model", to, x), learned.predict_proba(x), atol=2e-5)
    between = learned.predict_proba(samples(50, *shape))
    assert ((between > 0.05) & (between < 0.95)).any(), "nothing to compare"


def test_a_network_that_counts_nothing_is_not_in_the_file(tmp_path: Path) -> None:
    learned = {weight: density_model("inputs", network_weight=weight) for weight in (0.0, 0.5)}
    sizes = {weight: files.export_model(each, tmp_path / "model", "torch").bytes for weight, each in learned.items()}
    assert sizes[0.0] < sizes[0.5]


def test_what_rounding_does_to_large_scores_is_no_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Densities of many features are large numbers; with few digits behind the point their probabilities move."""
    for learned, taken in ((model(), False), (density_model("inputs", sharpness=100.0), True)):
        opened = files.FORMATS["torch"].load

        def a_little_off(path: Path, learned: Model = learned, opened: Any = opened) -> Any:
            return lambda x: {"probabilities": learned.predict_proba(x) + 3e-4}, opened(path)[1]

        with monkeypatch.context() as patch:
            patch.setattr(files.FORMATS["torch"], "load", a_little_off)
            if taken:
                assert files.export_model(learned, tmp_path / "model", "torch").max_difference == pytest.approx(3e-4)
            else:
                with pytest.raises(SpacenetError, match=r"differ by up to 0\.0003 \(at most 0\.0001 is rounding\)"):
                    files.export_model(learned, tmp_path / "model", "torch")


def test_what_rounding_does_to_a_model_that_enlarges_it_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores may be small and depend on the last bits of inputs all the same, as densities of features can."""
    learned, opened = model(), files.FORMATS["torch"].load
    vars(learned.method)["predictor"] = Pack(lambda _, x: torch.sin(1e4 * x[:, :4]), {})

    def load(path: Path, wrong: float) -> Any:
        return lambda x: {"probabilities": learned.predict_proba(x * np.float32(1 + 1e-7)) + wrong}, opened(path)[1]

    monkeypatch.setattr(files.FORMATS["torch"], "load", partial(load, wrong=0.0))
    difference = files.export_model(learned, tmp_path / "model", "torch").max_difference
    assert files.MAX_DIFFERENCE < difference < 0.005
    monkeypatch.setattr(files.FORMATS["torch"], "load", partial(load, wrong=0.05))
    with pytest.raises(SpacenetError, match="computes something else"):
        files.export_model(learned, tmp_path / "model", "torch")


def test_a_network_that_computes_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = model()
    made = learned.method.predictor
    other = made.params | {"output.bias": made.params["output.bias"] + torch.eye(4)[0]}
    network = PackedNetwork
    monkeypatch.setattr(
        files, "PackedNetwork", lambda made, *rest, **more: network(replace(made, params=other), *rest, **more)
    )
    (tmp_path / "model").write_text("an earlier export")
    with pytest.raises(SpacenetError, match="computes something else: probabilities differ by up to 0"):
        files.export_model(learned, tmp_path / "model", "torch")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "an earlier export"


def test_an_answer_that_is_no_number_is_not_taken(tmp_path: Path) -> None:
    learned = model()
    learned.method.ledger.units["output.bias"][0] = torch.nan
    learned.method.invalidate()
    with pytest.raises(SpacenetError, match="differ by up to nan|no finite scores"):
        files.export_model(learned, tmp_path / "model", "torch")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_where_the_file_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("no such operation\nand a long story")

    monkeypatch.setattr(torch.export, "load", fails)
    with pytest.raises(SpacenetError, match=r"cannot be exported as torch .*no such operation\)$"):
        files.export_model(model(), tmp_path / "model", "torch")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpacenetError, match="not learned anything yet"):
        files.export_model(new_model(), tmp_path / "model", "torch")
    with pytest.raises(SettingsError, match="unknown format 'tflite'. Choose from onnx, torch"):
        files.export_model(model(), tmp_path / "model", "tflite")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(
        SettingsError, match=r'needs onnx\w*, which is not installed: pip install "spacenet-cl\[export\]"'
    ):
        files.export_model(model(), tmp_path / "model", "onnx")


def test_the_torch_file_needs_torch_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    learned = animals()
    save_model(tmp_path / "animals", learned)
    target = tmp_path / "packed.pt2"
    assert main(["export", str(tmp_path / "animals"), "--to", "torch", "--out", str(target), "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["path"] == str(target)
    assert said["classes"] == ["cat", "dog", "fox", "owl"]
    np.save(tmp_path / "x.npy", samples(7, 8))
    script = """
import sys, json, numpy, torch
sys.modules["spacenet"] = None
facts = {"spacenet.json": ""}
network = torch.export.load("packed.pt2", extra_files=facts).module()
x = torch.from_numpy(numpy.load("x.npy"))
print(json.dumps([network(x).tolist(), network(x[:1]).tolist(), json.loads(facts["spacenet.json"])["classes"]]))
"""
    out, _ = start(["python", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True).communicate()
    several, one, classes = json.loads(out)
    np.testing.assert_allclose(several, learned.predict_proba(samples(7, 8)), atol=1e-5)
    np.testing.assert_allclose(one, several[:1], atol=1e-6)
    assert json.loads(classes) == ["cat", "dog", "fox", "owl"]


@pytest.mark.parametrize("to", ["onnx"])
def test_the_command_writes_beside_the_model(to: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "animals.safetensors", animals())
    capfd.readouterr()  # what was said of learning
    assert main(["export", str(tmp_path / "animals.safetensors"), "--to", to]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    assert "Classes: cat, dog, fox, owl" in captured.out
    assert "probabilities differ by at most" in captured.out
    written = tmp_path / f"animals{files.FORMATS[to].suffix}"
    assert f"Wrote {written}" in captured.out
    assert set(tmp_path.iterdir()) == {written, tmp_path / "animals.safetensors"}


def test_the_model_itself_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.pt2"
    save_model(path, animals())
    for out, complaint in (
        ([], "is what is read"),
        (["--out", str(tmp_path)], "is a folder"),
        (["--out", str(tmp_path / "no" / "model")], "is not a folder that can be written to"),
    ):
        assert main(["export", str(path), "--to", "torch", *out]) == 2
        assert complaint in capsys.readouterr().err
    assert load_model(path).classes == ["cat", "dog", "fox", "owl"]
