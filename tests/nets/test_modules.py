"""Modules of other packages in the space: learned by all methods, saved, resumed, grown and exported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spacenet
from spacenet.errors import SettingsError
from spacenet.model.export import export_model
from spacenet.model.file import load_model
from spacenet.nets.modules import build_from_text, trace_module
from spacenet.registry import METHODS
from tests.experiments.support import outcome
from tests.experiments.test_run import Stop
from tests.methods.support import LIGHT
from tests.nets.foreign import IMAGE_NETS, signal_net

QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 8, "learning_rate": 0.05, "progress": False}


def image_stream(shape: tuple[int, ...] = (3, 8, 8), classes: int = 4) -> spacenet.Stream:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), 16)
    x = (rng.normal(size=(classes, *shape))[y] + 0.5 * rng.normal(size=(len(y), *shape))).astype(np.float32)
    return spacenet.Stream.from_arrays(x, y, classes_per_task=2)


def module_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return IMAGE_NETS[name]()


@pytest.mark.parametrize("name", IMAGE_NETS)
def test_a_killed_run_is_resumed_to_the_same_bits_and_its_model_is_whole(name: str, tmp_path: Path) -> None:
    stream = image_stream()
    whole = spacenet.run(stream, net=module_of(name), out=tmp_path / "whole", **QUICK)
    with pytest.raises(KeyboardInterrupt):
        spacenet.run(stream, net=module_of(name), out=tmp_path / "killed", callbacks=[Stop(9)], **QUICK)
    spacenet.run(stream, net=module_of(name), out=tmp_path / "killed", **QUICK)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    x = np.random.default_rng(1).normal(size=(5, 3, 8, 8)).astype(np.float32)
    model = load_model(tmp_path / "whole" / "model.safetensors")
    assert whole.model is not None
    assert torch.equal(model.scores(x), whole.model.scores(x))


@pytest.mark.parametrize(("number", "method"), list(enumerate(METHODS)))
def test_every_method_takes_modules(number: int, method: str) -> None:
    name = ("mobilenet-v2", "densenet", "grouped")[number % 3]  # in turn, because it takes long
    settings = {**QUICK, "epochs": 1, "learning_rate": 0.005, **LIGHT.get(method, {})}
    result = spacenet.run(image_stream(), method, net=module_of(name), **settings)
    assert result.matrix.shape == (2, 2)


def test_a_network_of_another_package_learns_two_tasks(tmp_path: Path) -> None:
    efficientnet = pytest.importorskip("efficientnet_lite_pytorch", reason="needs the package")
    torch.manual_seed(0)
    module = efficientnet.EfficientNet.from_name("efficientnet-lite0", num_classes=4, width_coefficient=0.25)
    stream, options = image_stream((3, 32, 32)), {**QUICK, "epochs": 1}
    spacenet.run(stream, net=module, out=tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        spacenet.run(stream, net=module, out=tmp_path / "killed", callbacks=[Stop(4)], **options)
    spacenet.run(stream, net=module, out=tmp_path / "killed", **options)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


def test_signals_are_learned() -> None:
    torch.manual_seed(0)
    result = spacenet.run(image_stream((3, 16)), net=signal_net(), **{**QUICK, "epochs": 40, "learning_rate": 0.2})
    assert result.metrics["task_il_acc"] > 80


def test_a_network_that_grows() -> None:
    stream = image_stream(classes=12)
    result = spacenet.run(stream, net=module_of("mobilenet-v2"), expand="auto", reserved=(3,), **QUICK)
    assert len(result.matrix) == 6
    assert result.metrics["units_added"] > 0


def test_the_estimator_takes_a_module(tmp_path: Path) -> None:
    stream = image_stream()
    module = module_of("vgg11-bn")
    classifier = spacenet.SpaceNetClassifier(net=module, epochs=1)
    for task in stream:
        x = task.train.x.numpy()
        classifier.partial_fit(x, np.array([f"class {label}" for label in task.train.y.tolist()]))
    classifier.save(tmp_path / "model.safetensors")
    loaded = spacenet.load(tmp_path / "model.safetensors")
    assert loaded.predict(x).tolist() == classifier.predict(x).tolist()
    loaded.partial_fit(x, np.repeat("more", len(x)))  # learns on without the module
    assert len(loaded.classes_) == 5


@pytest.mark.usefixtures("_undrawn")
def test_the_page_of_a_run_shows_its_layers(tmp_path: Path) -> None:
    result = spacenet.run(image_stream(), net=module_of("mobilenet-v2"), **QUICK)
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    layers = spacenet.describe(module_of("mobilenet-v2"), (3, 8, 8)).layers[1:-1]
    assert "capacity" in page.lower()
    assert [layer.name for layer in layers if layer.name not in page] == []


@pytest.mark.usefixtures("_operators_once")
def test_an_exported_module_answers_alike(tmp_path: Path) -> None:
    result = spacenet.run(image_stream(), "spacenet", net=module_of("densenet"), **QUICK)
    assert result.model is not None
    export_model(result.model, tmp_path / "model.onnx", "onnx")  # compares the answers itself
    assert (tmp_path / "model.onnx").stat().st_size > 0


def test_a_factory_by_its_place_and_one_that_is_not_there() -> None:
    result = spacenet.run(image_stream(), net="tests.nets.foreign:mobilenet_v2", **QUICK)
    assert result.config.model.net.graph
    with pytest.raises(SettingsError, match="tests.nets.foreign:nothing cannot be imported"):
        spacenet.run(image_stream(), net="tests.nets.foreign:nothing", **QUICK)


def test_dropout_follows_from_the_seed_and_leaves_the_users_numbers_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 40), nn.ReLU(), nn.Dropout(0.5), nn.Linear(40, 4))
    torch.manual_seed(7)
    one, other = (spacenet.run(image_stream(), net=module, **QUICK) for _ in range(2))
    assert torch.equal(torch.rand(3), expected)
    assert one.metrics["tasks"][0]["epochs"] == other.metrics["tasks"][0]["epochs"]
    without = nn.Sequential(*(each for each in module if not isinstance(each, nn.Dropout)))
    plain = spacenet.run(image_stream(), net=without, **QUICK)
    assert plain.metrics["tasks"][0]["epochs"] != one.metrics["tasks"][0]["epochs"]


def test_maps_that_a_graph_in_a_file_makes_too_large_are_refused_before_they_are_computed() -> None:
    module = nn.Sequential(nn.ZeroPad2d(7), nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    text = trace_module(module, (3, 8, 8))
    assert text.count("[7,7,7,7]") == 1
    assert build_from_text(text).layers[1].size == 4
    with pytest.raises(SettingsError, match="maps are too large"):
        build_from_text(text.replace("[7,7,7,7]", "[4000,4000,4000,4000]"))
