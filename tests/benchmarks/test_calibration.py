import json
from pathlib import Path

import pytest

from benchmarks import calibration


def test_it_measures_images_and_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "TABLES", {"wine": calibration.TABLES["wine"]})
    path = tmp_path / "calibration.json"
    arguments = ["--streams", "split-digits", "--seeds", "1", "--epochs", "1", "--json", str(path)]
    assert calibration.main(arguments) == 0
    found = json.loads(path.read_text())["data"]
    assert [*found] == ["split-digits", "wine"]
    for rows in found.values():
        assert rows[0]["accuracy"] > 95
        assert rows[0]["ece"] < 5
        assert rows[0]["coverage"] > 80
        assert rows[0]["worst"] <= rows[0]["coverage"] <= 100
        assert rows[0]["size"] < 2
    assert "ECE without" in capsys.readouterr().out
