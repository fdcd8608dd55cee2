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
    "encoders",
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
    "studio",
    "cli",
)
"""Each may import those before it; so there are no cycles among packages."""
BESIDES = {"space": {"config", "data"}, "nets": {"data"}, "report": set()}
BESIDES |= {name: {"experiments", "report", "api"} for name in ("serve", "studio")}
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


def loaded_by(*commands: list[str]) -> list[set[str]]:
    """The heavy modules that are loaded after each of the commands, which run in one process."""
    code = (
        "import json, sys; from spacenet.cli.main import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    code = main(arguments)\n"
        f"    loaded = [name for name in {('torch', *HEAVY)!r} if name in sys.modules]\n"
        "    print(json.dumps([code, loaded]), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert [code for code, _ in found] == [0] * len(commands), done.stderr
    return [set(heavy) for _, heavy in found]


def test_the_overview_and_the_list_of_data_sets_need_no_torch(tmp_path: Path) -> None:
    assert loaded_by(["--help"], ["data", "list", "--data-dir", str(tmp_path)]) == [set(), set()]


def test_a_run_and_the_commands_on_its_model_load_what_they_need(tmp_path: Path) -> None:
    short = ["--epochs", "1", "--tasks", "0,1/2,3", "--quiet", "--no-report"]
    np.savez(tmp_path / "data.npz", x=np.zeros((3, 8, 8)), y=np.arange(3))
    model = str(tmp_path / "run" / "model.safetensors")
    commands = [
        ["run", "split-digits", *short, "--out", str(tmp_path / "run")],
        ["inspect", model],
        ["evaluate", model, str(tmp_path / "data.npz"), "--quiet"],
        ["run", "split-digits", "--method", "spacenet-density", *short, "--out", str(tmp_path / "density")],
    ]
    assert loaded_by(*commands) == [{"torch"}] * 4
