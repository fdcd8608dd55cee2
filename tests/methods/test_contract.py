"""What holds for every method."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import torch

import spacenet.methods
import spacenet.training
from spacenet.config.presets import PRESETS, preset_config
from spacenet.config.ranges import Choice, Uniform
from spacenet.config.settings import field_docs, field_types
from spacenet.methods.base import Method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.nets.mlp import build_mlp
from spacenet.registry import METHODS
from tests.methods.support import LIGHT, copy_state, learn, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

OWN = {"spacenet", "spacenet-density", "static-sparse", "spacenet-rehearsal", "naive", "joint"}
each = pytest.mark.parametrize("name", METHODS)
SMALL: Mapping[str, object] = {"selected": (10,), "reserved": (2,), "connections": (0.1,)}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return modules | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}


def files(package: object) -> list[Path]:
    return sorted(Path(str(vars(package)["__file__"])).parent.rglob("*.py"))


def test_no_methods_file_imports_another() -> None:
    own = {f"spacenet.methods.{name.replace('-', '_')}" for name in METHODS}
    inside = files(spacenet.methods)
    assert len(inside) > len(own)
    for path in inside:
        known = imported(path) & own
        assert not known, f"{path.name} imports {known}"


def test_the_training_loop_imports_no_method() -> None:
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
def test_every_setting_has_a_help_text(name: str) -> None:
    kind = METHODS[name].Settings
    assert field_docs(kind).keys() >= field_types(kind).keys()
    assert all(text.endswith(".") for text in field_docs(kind).values())


@each
def test_presets_and_search_spaces_are_valid_settings(name: str) -> None:
    for stream, presets in PRESETS.items():
        for preset in presets:
            preset_config(stream, name, preset=preset)
            for key, range_ in METHODS[name].search_space.items():
                section, setting = key.split(".")
                if isinstance(range_, Uniform):
                    assert range_.low < range_.high
                    ends = [range_.low, range_.high]
                    values = [int(end) for end in ends] if range_.integer else ends
                else:
                    assert isinstance(range_, Choice)
                    values = list(range_.values)
                for value in values:
                    preset_config(stream, name, {section: {setting: value}}, preset=preset)


def small_method(name: str) -> Method:
    kind: type[Method] = METHODS[name]
    return kind(
        build_mlp((8,), (30, 30)),
        kind.Settings(**(SMALL if issubclass(kind, SparseMethod) else LIGHT.get(name, {}))),
        0,
    )


@cache
def learned(name: str) -> Method:
    """A method that has learned two tasks. Tests only look at it."""
    method = small_method(name)
    learn(method, small_stream()[:2])
    return method


@each
def test_every_number_kept_is_counted_and_restored(name: str) -> None:
    method, again, stream = learned(name), small_method(name), small_stream()
    assert method.parameters_kept() > 0
    assert method.bytes_kept() == method.extra_bytes() + sum(t.nbytes for t in method.network_state().values())
    again.memory.restore(stream, method.memory.rows)
    again.load_state(copy_state(method))
    assert (again.tasks_learned, again.classes) == (2, [range(2), range(2, 4)])
    x = torch.cat([task.test.x for task in stream[:2]])
    assert method.predict(x).shape == (len(x), 4)
    assert torch.equal(again.predict(x), method.predict(x))


@each
def test_it_learns_images_with_the_small_cnn(name: str) -> None:
    kind, stream = METHODS[name], images(2)
    method = kind(tiny_cnn(), kind.Settings(**(SMALL if issubclass(kind, SparseMethod) else LIGHT.get(name, {}))), 0)
    method.check(stream)
    learn(method, stream, TRAINING)
    assert bool(method.predict_all(stream[0].test.x).isfinite().all())
    assert method.predict_all(stream[0].test.x).shape[1] == 4


@each
def test_no_graph_of_a_step_outlives_it(name: str) -> None:
    """It would hold the memory of a whole step, and on a GPU the stream the step ran on."""
    values = [
        part for value in vars(learned(name)).values() for part in (value if isinstance(value, tuple) else (value,))
    ]
    assert not [value for value in values if isinstance(value, torch.Tensor) and value.grad_fn is not None]
