"""The notebook's cells run one after the other, and what they show is a table."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacenet.api import Comparison, RunResult
from spacenet.data.stream import Stream
from spacenet.registry import METHODS, NETS

NOTEBOOK = Path(__file__).parents[1] / "examples" / "quickstart.ipynb"
MAX_LINES = 40


def code_cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(source, namespace)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), str(NOTEBOOK), "exec"), namespace)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), namespace)


@pytest.fixture
def clean_registries() -> Iterator[None]:
    yield
    METHODS.unregister("anchor")
    NETS.unregister("build-tanh-net")


def test_the_notebook_is_short() -> None:
    lines = [line for source in code_cells() for line in source.splitlines() if line.strip()]
    assert len(lines) < MAX_LINES


@pytest.mark.usefixtures("clean_registries")
def test_the_notebook_runs_from_arrays_to_a_comparison() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [source.replace("seeds=2", "seeds=1") for source in code_cells()]  # one shows as much
    shown = [value for source in cells if (value := run_cell(source, namespace)) is not None]
    assert [type(value) for value in shown] == [Stream, RunResult, Comparison]
    pages = [value._repr_html_() for value in shown]
    assert all(page.count("<table") >= 1 for page in pages)
    assert shown[1].acc > 75
    rows = {row.method: row for row in shown[2].rows}
    assert not shown[2].failures
    assert set(rows) == {"naive", "anchor", "spacenet", "spacenet-density", "joint"}
    assert all(name in pages[2] for name in rows)
    assert rows["joint"].acc.mean > rows["spacenet"].acc.mean > rows["naive"].acc.mean
    assert shown[2].runs["anchor"][0].config.model.net.name == "build-tanh-net"
