"""Methods from other packages; the one in docs/own-method.md is taken as it is written there."""

import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest
import torch

import spacenet.registry
from spacenet.errors import SettingsError
from spacenet.methods import get_method, register_method
from spacenet.methods.naive import Naive
from spacenet.registry import METHODS
from tests.methods.support import copy_state, learn, make, small_stream

PAGE = Path(__file__).parents[2] / "docs" / "own-method.md"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """As if packages with these entry points were installed."""
    module = ModuleType("anchored")
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    assert len(code[1].splitlines()) <= 46
    monkeypatch.setitem(sys.modules, "anchored", module)
    exec(compile(code[1], str(PAGE), "exec"), vars(module))
    named = re.search(r'(\w+) = "(\w+:\w+)"', PAGE.read_text(encoding="utf-8"))
    assert named is not None
    values = {named[1]: named[2], "broken": "no_such_module:X", "no-method": "anchored:Uniform", "other": named[2]}
    points = EntryPoints(EntryPoint(name, value, METHODS.group) for name, value in values.items())
    monkeypatch.setattr(spacenet.registry, "entry_points", lambda group: points.select(group=group))
    return module


@pytest.mark.usefixtures("outside")
def test_the_documented_method_learns_and_is_resumed() -> None:
    assert "anchored" in METHODS
    kind, stream = get_method("anchored"), small_stream()
    assert kind.search_space
    method, again, free = make(kind, {"strength": 1.0}), make(kind, {"strength": 1.0}), make(Naive)
    for each in (method, free):
        learn(each, stream[:1])
    before = method.network_state()["params/input-hidden1"].clone()
    for each in (method, free):
        learn(each, [stream[1]])
    held, moved = (each.network_state()["params/input-hidden1"] - before for each in (method, free))
    assert float(held.norm()) < 0.5 * float(moved.norm())
    method.begin_task(stream[2], stream[2].train)
    again.load_state(copy_state(method))
    assert all(torch.equal(tensor, again.state()[name]) for name, tensor in method.state().items())
    with pytest.raises(SettingsError, match="strength: -1 is out of range"):
        make(kind, {"strength": -1})


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"'broken' \(no_such_module:X.*cannot be loaded: No module named"),
        ("no-method", "is not a subclass of spacenet.methods.Method"),
        ("other", "calls itself 'anchored'"),
        ("missing", "unknown method 'missing'.* Choose from naive, .*anchored"),
        ("anchord", "did you mean 'anchored'?"),
    ],
)
def test_what_is_wrong_with_it_is_in_the_message(name: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        get_method(name)


def test_a_method_is_registered_by_its_name_once() -> None:
    class Lazy(Naive):
        """Fine-tuning for one epoch."""

        name = "lazy"

    try:
        assert register_method(Lazy) is Lazy
        assert get_method("lazy") is Lazy
        assert list(METHODS)[-1] == "lazy"
        with pytest.raises(SettingsError, match="already a method named 'lazy'"):
            register_method(type("Other", (Naive,), {"name": "lazy"}))
    finally:
        METHODS.unregister("lazy")
    assert "lazy" not in METHODS
    with pytest.raises(SettingsError, match="already a method named 'naive'"):
        register_method(Naive)
    with pytest.raises(SettingsError, match="not a subclass"):
        register_method(str)  # type: ignore[arg-type]
