import json
from pathlib import Path

import pytest

from benchmarks import density


def test_it_measures_both_and_says_whether_the_claims_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "density.json"
    assert density.main(["--tiny", "--repeats", "1", "--seconds-per-cell", "0.01", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    shown = capsys.readouterr().out
    assert f"{density.ratios(figures)['learning all tasks']:.2f}" in shown
    assert "Each class keeps 15,722 numbers." in shown
    assert set(figures["predicting_ms"]) == {"1", "1000"}


def test_another_stream_is_learned_with_the_presets_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--stream split-digits --batches 1 3 --repeats 1 --seconds-per-cell 0.01"
    assert density.main(words.split()) == 0
    shown = capsys.readouterr().out
    assert "split-digits, mlp, on " in shown
    assert "3 raw images to labels" in shown


def test_a_stream_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert density.main(["--stream", "nothing"]) == 2
    assert "unknown stream 'nothing'" in capsys.readouterr().err


def test_the_verdict_names_what_takes_too_long() -> None:
    figures = {
        "training_seconds": {"spacenet": [1.0, 2.0, 3.0], "spacenet-density": [2.8, 9.0, 0.1]},
        "predicting_ms": {
            "1": {"spacenet": 1.0, "spacenet-density": 2.0},
            "1000": {"spacenet": 1.0, "spacenet-density": 3.5},
        },
        "floats_per_class": 7,
    }
    said = density.verdict(figures)
    assert "Learning takes 1.40 times as long; as claimed" in said
    assert "Predicting takes 3.50 times as long; NOT as claimed" in said
