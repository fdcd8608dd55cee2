"""What is installed under which name: every command that is printed works, and everything imported is declared."""

import ast
import re
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

import spacenet
from spacenet.errors import MissingExtraError
from spacenet.utils.extras import DISTRIBUTION, require_extra

ROOT = Path(__file__).parent.parent
PACKAGE = Path(spacenet.__file__).parent
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.*"))]
NAMES = {"PIL": "pillow", "sklearn": "scikit-learn", "lightning": "lightning-fabric", "mlflow": "mlflow-skinny"}
"""Distributions whose modules have another name."""
THROUGH = {"urllib3": "requests", "pydantic": "fastapi", "starlette": "fastapi", "h11": "uvicorn"}
"""What comes with what is declared."""


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    path = ROOT / "pyproject.toml"
    if not path.is_file():
        pytest.skip("not a checkout")
    return dict(tomllib.loads(path.read_text(encoding="utf-8"))["project"])


def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def calls_of_require_extra() -> list[tuple[str, list[str]]]:
    """The extra and the modules of each call."""
    calls = [
        node
        for text in sources().values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require_extra"
    ]
    return [
        (str(call.args[1].value), [str(each.value) for each in call.args[2:] if isinstance(each, ast.Constant)])
        for call in calls
        if isinstance(call.args[1], ast.Constant)
    ]


def test_the_distribution_has_the_name_that_is_printed(project: dict[str, Any]) -> None:
    assert metadata(DISTRIBUTION)["Name"] == project["name"] == DISTRIBUTION == "spacenet-cl"


def test_every_extra_that_is_asked_for_is_declared(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    assert len(calls_of_require_extra()) > 10
    for extra, modules in calls_of_require_extra():
        assert extra in extras, f"require_extra names {extra!r}"
        declared = {normalize(re.split(r"[<>=\[]", each)[0]) for each in extras[extra]}
        for module in modules[:1]:
            top = module.split(".")[0]
            assert normalize(NAMES.get(top, top)) in declared, f"{extra} does not install {module}"


def test_install_commands_name_the_distribution_and_declared_extras(project: dict[str, Any]) -> None:
    texts = {**sources(), **{path: path.read_text(encoding="utf-8") for path in TEXTS if path.is_file()}}
    found = 0
    for path, text in texts.items():
        assert not re.search(r"\bspacenet\[[a-z]", text), f"{path} names extras of a distribution that does not exist"
        assert not re.search(r"pip install (-U )?\"?spacenet(?!-cl)\b(?!/)", text), path
        for names in re.findall(r"spacenet-cl\[([a-z, ]+)\]", text):
            found += 1
            unknown = {each.strip() for each in names.split(",")} - set(project["optional-dependencies"])
            assert not unknown, f"{path} names the extras {unknown}"
    assert found > 3


def test_a_missing_library_names_the_command_that_installs_it() -> None:
    with pytest.raises(ImportError) as caught:
        require_extra("reports", "report", "no_such_library.part")
    assert isinstance(caught.value, MissingExtraError)
    assert str(caught.value).endswith('pip install "spacenet-cl[report]"')


def test_everything_that_is_imported_is_declared(project: dict[str, Any]) -> None:
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {normalize(re.split(r"[<>=\[]", each)[0]) for names in lists for each in names}
    for path, text in sources().items():
        nodes = list(ast.walk(ast.parse(text)))
        modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for top in {module.split(".")[0] for module in modules} - {"spacenet", ""} - sys.stdlib_module_names:
            assert normalize(THROUGH.get(top, NAMES.get(top, top))) in declared, f"{path} imports {top}"
