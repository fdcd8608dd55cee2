import json
from pathlib import Path

import pytest

from benchmarks import experts


def test_it_measures_the_parts_alone_and_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "experts.json"
    assert experts.main(["--tiny", "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    assert len(parts) == 3 + len(experts.WEIGHTS)
    assert all(0 <= value <= 100 for figures in parts.values() for value in figures.values())
    assert "2 tasks of 10 classes, seed 0, held-out data" in capsys.readouterr().out
