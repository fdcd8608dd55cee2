"""Small runs to make pages of."""

from pathlib import Path

import numpy as np
import pytest

from spacenet.experiments.run import Run, create_folder
from tests.experiments.support import config
from tests.support import clouds

METHODS = ("naive", "ewc", "lwf", "er", "packnet", "static-sparse", "spacenet", "joint")
HOSTILE = (
    "<script>alert(1)</script>",
    "$x_{$",
    "\"&amp;'",
    "a label that is much longer than anybody needs",
    "]]>",
    "z",
)
"""Names of classes that would do harm where they are taken for anything but text."""


def _run(folder: Path, place: Path, method: str = "spacenet", seed: int = 0, **over: dict[str, object]) -> Path:
    create_folder(config(place, method, seed, **over), folder)
    Run(folder).execute()
    return folder


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    return _run(place / "run", place)


@pytest.fixture(scope="session")
def density_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    return _run(place / "run", place, "spacenet-density", options={"directions": 3})


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    data = clouds()
    labels = np.array(HOSTILE)
    path = place / "<b>data.npz"
    np.savez(path, x_train=data.x_train, y_train=labels[data.y_train], x_test=data.x_test, y_test=labels[data.y_test])
    return _run(place / "<i>run", place, data={"npz": str(path)})


@pytest.fixture(scope="session")
def seeds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    for seed in (3, 4):
        _run(place / "runs" / f"seed-{seed}", place, seed=seed)
    return place / "runs"


@pytest.fixture(scope="session")
def comparison_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    for method in METHODS:
        for seed in (0, 1):
            _run(place / "compare" / method / f"seed-{seed}", place, method, seed)
    return place / "compare"
