import json
from pathlib import Path

import pytest

from benchmarks import unknown


def test_it_measures_images_and_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown, "SPLITS", 1)
    monkeypatch.setattr(unknown, "TABLES", {"wine": unknown.TABLES["wine"]})
    path = tmp_path / "unknown.json"
    assert unknown.main(["--streams", "split-digits", "--epochs", "1", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["data"] for row in rows] == ["split-digits without 8, 9", *(f"wine without {n}" for n in range(3))]
    assert rows[0]["auroc"] > 0.95
    assert abs(rows[0]["false_alarms"] - 5) < 4
    assert all(row["huge"] == row["constant"] == 100 for row in rows)
    assert rows[0]["noise"] == 100
    assert rows[0]["bound"] is None
    assert all(row["noise"] > 65 and 85 < row["bound"] <= 100 for row in rows[1:])
    shown = capsys.readouterr().out
    assert "AUROC" in shown
    assert f"{rows[0]['auroc']:.3f}" in shown


def test_a_stream_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert unknown.main(["--streams", "nothing"]) == 2
    assert "unknown stream 'nothing'" in capsys.readouterr().err
