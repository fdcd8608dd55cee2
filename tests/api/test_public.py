"""The names of `import spacenet`: just these, each with a docstring whose examples run."""

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import spacenet

NAMES = [
    "Callback",
    "SpaceNetClassifier",
    "Stream",
    "compare",
    "describe",
    "evaluate",
    "load",
    "register_dataset",
    "register_method",
    "register_net",
    "register_stream",
    "run",
    "stream",
    "sweep",
    "tune_encoder",
]
MODULES = [
    "spacenet",
    "spacenet.api.description",
    "spacenet.api.evaluation",
    "spacenet.api.tuning",
    "spacenet.api.functions",
    "spacenet.config.presets",
    "spacenet.data.stream",
    "spacenet.data.streams",
    "spacenet.experiments.callbacks",
    "spacenet.methods",
    "spacenet.model.estimator",
    "spacenet.nets",
    "spacenet.report.table",
]


def test_these_are_all_public_names() -> None:
    assert dir(spacenet) == sorted(spacenet.__all__) == NAMES
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spacenet.nothing  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_docstring_with_examples(name: str) -> None:
    doc = inspect.getdoc(getattr(spacenet, name)) or ""
    assert "Examples\n--------" in doc
    assert ">>> " in doc
    home: ModuleType = import_module(getattr(spacenet, name).__module__)
    assert home.__name__ in MODULES, "its examples are not run below"


@pytest.mark.filterwarnings("ignore")  # optuna says that parts of it may still change
@pytest.mark.parametrize("module", MODULES)
def test_the_examples_run(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


def test_importing_spacenet_loads_nothing_heavy() -> None:
    code = "import sys, spacenet; dir(spacenet); print([m for m in ('torch', 'sklearn', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
