"""Which package may import which, and what a command may load."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spacenet

ROOT = Path(spacenet.__file__).parent
ORDER = (
    "errors",
    "registry",
    "utils",
    "config",
    "data",
    "space",
    "nets",
    "methods",
    "training",
    "model",
    "experiments",
    "report",
    "api",
    "serve",
    "cli",
)
"""Each may import those before it; so there are no cycles among packages."""
BESIDES = {"space": {"config", "data"}, "nets": {"data"}, "report": set(), "serve": {"experiments", "report", "api"}}
"""What a package does without, although it comes before."""
HEAVY = (
    "sklearn",
    "scipy",
    "pandas",
    "matplotlib",
    "jinja2",
    "torch._dynamo",
    "lightning_fabric",
    "distributed",
    "ray",
    "optuna",
    "fastapi",
)


def imported(path: Path) -> set[str]:
    """The packages of spacenet that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[1] for name in modules if name.startswith("spacenet.")}


def files_of(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py")) or [ROOT / f"{part}.py"]


def test_every_part_has_its_place() -> None:
    found = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert found - {"__init__", "__main__"} == set(ORDER)


@pytest.mark.parametrize("part", ORDER)
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    allowed = {part, *ORDER[: ORDER.index(part)]} - BESIDES.get(part, set())
    for path in files_of(part):
        assert imported(path) <= allowed, f"{path.relative_to(ROOT)} imports {sorted(imported(path) - allowed)}"


def test_modules_of_a_package_do_not_import_each_other_in_a_circle() -> None:
    edges: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(("spacenet", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        body = ast.parse(path.read_text(encoding="utf-8")).body  # at import time only
        edges[name] = {n.module for n in body if isinstance(n, ast.ImportFrom) and n.module}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f"a circle: {' → '.join((*trail, name))}"
        if name in edges and name not in state:
            state[name] = 1
            for other in sorted(edges[name]):
                visit(other, (*trail, name))
            state[name] = 2

    for name in edges:
        visit(name, ())


def loaded_by(*arguments: str) -> set[str]:
    """The heavy modules that a command loads."""
    code = (
        "import json, sys; from spacenet.cli.main import main; code = main(sys.argv[1:]); "
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]; "
        "print(json.dumps([code, loaded, 'torch' in sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    exit_code, heavy, torch = json.loads(done.stderr.splitlines()[-1])
    assert exit_code == 0, done.stderr
    return {*heavy, *(["torch"] if torch else [])}


def test_the_overview_and_the_list_of_data_sets_need_no_torch(tmp_path: Path) -> None:
    assert loaded_by("--help") == set()
    assert loaded_by("data", "list", "--data-dir", str(tmp_path)) == set()


@pytest.mark.parametrize("method", ["spacenet", "spacenet-density"])
def test_a_run_and_the_commands_on_its_model_load_what_they_need(tmp_path: Path, method: str) -> None:
    out = tmp_path / "run"
    short = ("--epochs", "1", "--tasks", "0,1/2,3", "--quiet", "--no-report")
    assert loaded_by("run", "split-digits", "--method", method, *short, "--out", str(out)) == {"torch"}
    if method == "spacenet":
        model = str(out / "model.safetensors")
        assert loaded_by("inspect", model) == {"torch"}
        np.savez(tmp_path / "data.npz", x=np.zeros((3, 8, 8)), y=np.arange(3))
        assert loaded_by("evaluate", model, str(tmp_path / "data.npz"), "--quiet") == {"torch"}
