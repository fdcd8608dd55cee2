"""Methods that other packages bring along; the one in docs/own-method.md is taken as it stands there."""

import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest

import spacenet.methods
from spacenet.cli.main import main
from spacenet.errors import SettingsError
from spacenet.methods import get_method, method_names
from tests.support import clouds_file

PAGE = Path(__file__).parents[2] / "docs" / "own-method.md"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """As if packages were installed that name these."""
    module = ModuleType("anchored")
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    assert len(code[1].splitlines()) <= 42
    monkeypatch.setitem(sys.modules, "anchored", module)
    exec(compile(code[1], str(PAGE), "exec"), vars(module))
    named = re.search(r'(\w+) = "(\w+:\w+)"', PAGE.read_text(encoding="utf-8"))
    assert named is not None
    values = {named[1]: named[2], "broken": "no_such_module:X", "no-method": "anchored:Between", "other": named[2]}
    points = EntryPoints(EntryPoint(name, value, spacenet.methods.GROUP) for name, value in values.items())
    monkeypatch.setattr(spacenet.methods, "entry_points", lambda group: points.select(group=group))
    return module


@pytest.mark.usefixtures("outside")
def test_the_documented_method_runs_and_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "anchored" in method_names()
    assert get_method("anchored").search_space
    data = ["--npz", str(clouds_file(tmp_path)), "--epochs", "2", "--hidden", "20", "--quiet"]
    command = ["run", *data, "--method", "anchored", "--strength", "0.5", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    assert "anchored on npz, seed 0" in capsys.readouterr().out


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"'broken' \(no_such_module:X.*cannot be loaded: No module named"),
        ("no-method", "is not a subclass of spacenet.methods.base.Method"),
        ("other", "calls itself 'anchored'"),
        ("missing", "there is no 'missing'; there are naive, .*anchored"),
    ],
)
def test_what_is_wrong_with_it_is_said(name: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        get_method(name)
