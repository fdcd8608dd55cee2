"""Data flows one way: which part of the package may know which."""

import ast
from pathlib import Path

import pytest

import spacenet

ROOT = Path(spacenet.__file__).parent
KNOWS_NOTHING_OF = {
    "space": {"methods", "streams", "training", "experiments", "deploy", "report", "commands", "datasets", "nets"},
    "density": {
        "methods",
        "streams",
        "training",
        "experiments",
        "deploy",
        "report",
        "commands",
        "datasets",
        "nets",
    },
    "nets": {"methods", "streams", "training", "experiments", "deploy", "report", "commands", "datasets"},
    "datasets": {"methods", "streams", "training", "experiments", "deploy", "report", "commands", "nets"},
    "streams": {"methods", "training", "experiments", "deploy", "report", "commands", "nets"},
    "methods": {"experiments", "deploy", "report", "commands"},
    "training": {"experiments", "deploy", "report", "commands"},
    "deploy": {"experiments", "report", "commands"},
    "experiments": {"report", "commands"},
    "report": {"commands"},
}


def known(path: Path) -> set[str]:
    """The parts of the package that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[1] for name in modules if name.startswith("spacenet.")}


@pytest.mark.parametrize("part", KNOWS_NOTHING_OF)
def test_a_part_knows_only_what_lies_below_it(part: str) -> None:
    files = sorted((ROOT / part).rglob("*.py"))
    assert files
    for path in files:
        wrong = known(path) & (KNOWS_NOTHING_OF[part] | {"cli"})
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"
