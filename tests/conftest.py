"""One thread: two of them on a busy machine can be forty times slower, and their sums may differ in the last bits."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("suite", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests must not depend on the width of somebody's terminal."""
    monkeypatch.setenv("COLUMNS", "100")
