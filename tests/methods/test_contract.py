"""What holds for every method, whatever it does."""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

import spacenet.methods
import spacenet.training
from spacenet.config.presets import BENCHMARKS, preset
from spacenet.config.ranges import Choice, Uniform
from spacenet.errors import SettingsError
from spacenet.methods import METHODS
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.nets.mlp import mlp
from tests.methods.support import learn, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

STRATEGIES = ("regularization", "rehearsal", "statistical", "architectural", "bounds")
OWN = {"spacenet", "spacenet-density", "static-sparse", "spacenet-rehearsal", "naive", "joint"}
MLP_ONLY: set[str] = set()
"""Methods that say why they cannot learn with convolutions."""
each = pytest.mark.parametrize("name", METHODS)
SMALL: Mapping[str, object] = {"selected": (10,), "reserved": (2,), "connections": (0.1,)}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return modules | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}


def files(package: object) -> list[Path]:
    return sorted(Path(str(vars(package)["__file__"])).parent.rglob("*.py"))


def test_no_methods_file_knows_another() -> None:
    inside = [path for path in files(spacenet.methods) if path.parent.name in STRATEGIES]
    assert len(inside) > len(METHODS)
    for path in inside:
        known = {module for module in imported(path) if module.split(".")[2:3] and module.split(".")[2] in STRATEGIES}
        assert not known, f"{path.name} imports {known}"


def test_the_training_loop_knows_no_method() -> None:
    for path in files(spacenet.training):
        known = {module for module in imported(path) if module.startswith("spacenet.methods")}
        assert known <= {"spacenet.methods.base"}, f"{path.name} imports {known}"


@each
def test_a_method_says_what_it_is(name: str) -> None:
    method = METHODS[name]
    assert method.__doc__
    assert method.strategy in ("Regularization", "Rehearsal", "Statistical", "Architectural", "Bound")
    assert (method.reference and method.settings_from) or name in OWN


@each
def test_settings_hold_for_every_stream_and_ranges_name_settings(name: str) -> None:
    for stream, presets in BENCHMARKS.items():
        for preset_name in presets:
            config = preset(stream, name, preset_name=preset_name)
            for key, range_ in METHODS[name].search_space.items():
                section, setting = key.split(".")
                assert hasattr(getattr(config, section), setting), key
                if isinstance(range_, Uniform):
                    assert range_.low < range_.high
                    preset(stream, name, {section: {setting: int(range_.low) if range_.integer else range_.low}})
                else:
                    assert isinstance(range_, Choice)
                    for value in range_.values:
                        preset(stream, name, {section: {setting: value}})


@each
def test_every_number_kept_is_counted_and_comes_back(name: str) -> None:
    kind, stream = METHODS[name], small_stream()
    settings = kind.Settings(**(SMALL if issubclass(kind, SparseMethod) else {}))
    method, again = (kind(mlp(8, (30, 30)), settings, 0) for _ in range(2))
    learn(method, stream[:2])
    assert method.parameters_kept() > 0
    assert method.bytes_kept() == method.extra_bytes() + sum(t.nbytes for t in method.network_state().values())
    again.tasks_learned, again.classes = 2, list(method.classes)
    again.memory.restore(stream, method.memory.rows)
    again.load_model({key: tensor.clone() for key, tensor in method.model().items()})
    x = torch.cat([task.test.x for task in stream[:2]])
    assert method.predict(x).shape == (len(x), 4)
    assert torch.equal(again.predict(x), method.predict(x))


@each
def test_it_learns_images_with_the_small_cnn_or_says_why_not(name: str) -> None:
    kind, stream = METHODS[name], images(2)
    settings = kind.Settings(**(SMALL if issubclass(kind, SparseMethod) else {}))
    if name in MLP_ONLY:
        with pytest.raises(SettingsError, match=name):
            kind(tiny_cnn(), settings, 0).check(stream)
        return
    method = kind(tiny_cnn(), settings, 0)
    method.check(stream)
    learn(method, stream, TRAINING)
    assert bool(method.predict_all(stream[0].test.x).isfinite().all())
    assert method.predict_all(stream[0].test.x).shape[1] == 4
