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
    assert "2 tasks of 10 classes, seed 0, held-out" in capsys.readouterr().out


def test_on_the_test_set_only_the_presets_weight_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "experts.json"
    assert experts.main(["--tiny", "--held-out", "0", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    assert list(figures["parts"])[3:] == ["both, weight 0.15"]
    assert figures["parts"]["both, weight 0.15"]["acc"] == pytest.approx(figures["metrics"]["acc"])
    assert "test set" in capsys.readouterr().out
