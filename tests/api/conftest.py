from collections.abc import Iterator
from pathlib import Path

import pytest

from spacenet.registry import DATASETS, METHODS, NETS, STREAMS


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder; what a test registers is removed afterwards."""
    monkeypatch.chdir(tmp_path)
    before = [(registry, set(registry)) for registry in (METHODS, NETS, DATASETS, STREAMS)]
    yield tmp_path
    for registry, names in before:
        for name in set(registry) - names:
            registry.unregister(name)
