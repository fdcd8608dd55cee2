"""What the tests of measuring commands share."""

from pathlib import Path

import pytest

from benchmarks import pictures


@pytest.fixture(autouse=True)
def _pictures_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that tests make of invented figures do not draw over the documentation's pictures."""
    monkeypatch.setattr(pictures, "DOCS", tmp_path)
