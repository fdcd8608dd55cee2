import json
import re
from pathlib import Path

import pytest

from benchmarks import rivals
from benchmarks.rivals import Cell, Options, cells, losses_of
from spacenet.cli.assignments import parse_assignments
from spacenet.registry import METHODS

STREAM = "split-digits"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rivals, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(rivals, "PAGE", tmp_path / "rivals.md")
    monkeypatch.setattr(rivals, "TITLES", {STREAM: "Digits"})
    return tmp_path


def test_every_loss_that_a_method_offers_is_a_cell() -> None:
    assert list(losses_of("ewc")) == ["all", "own", "own-phantom"]
    assert list(losses_of("packnet")) == ["own", "own-phantom"]
    assert list(losses_of("spacenet")) == ["own", "own-phantom"]
    assert list(losses_of("fecam")) == ["fixed"]
    found = list(cells(Options((STREAM,))))
    assert {cell.method for cell in found} == set(METHODS) - rivals.NOT_HERE
    assert [cell.loss for cell in cells(Options((STREAM,), ("ewc", "den"), ("own",)))] == ["own", "own"]


def test_the_command_of_a_search_has_its_loss() -> None:
    command = Cell(STREAM, "ewc", "own-phantom").command(4)
    assert command == f"spacenet sweep {STREAM} --method ewc --set loss_over=own --set phantom_classes=8 --trials 4"


def test_the_command_of_every_kept_search_is_its_cells() -> None:
    logs = [json.loads(path.read_text(encoding="utf-8")) for path in rivals.LOGS.glob("*.json")]
    assert len(logs) > 80
    for log in logs:
        cell = Cell(log["stream"], log["method"], log["loss"])
        assert log["command"] == cell.command(8)
        common, _ = parse_assignments(re.findall(r"--set (\S+)", log["command"]), [cell.method])
        assert common == cell.settings


def test_a_search_is_kept_and_not_repeated(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    given = ["--stream", STREAM, "--method", "gaussian", "--seeds", "1", "--folder", str(here / "runs"), "--trials"]
    assert rivals.main([*given, "2"]) == 0
    log = json.loads((here / "logs" / f"{STREAM}-gaussian-fixed.json").read_text())
    assert [trial["number"] for trial in log["trials"]] == [0, 1]
    assert log["best"] == max(log["trials"], key=lambda trial: float(trial["score"]))["values"]
    assert log["test"][0]["acc"] > 90
    page = (here / "rivals.md").read_text()
    assert "| gaussian | fixed |" in page
    assert rivals.main([*given, "2"]) == 0
    assert "done already" in capsys.readouterr().out
    assert rivals.main([*given, "3"]) == 0
    again = json.loads((here / "logs" / f"{STREAM}-gaussian-fixed.json").read_text())
    assert again["trials"][:2] == log["trials"]
    assert len(again["trials"]) == 3


def test_without_figures_there_is_only_the_introduction(here: Path) -> None:
    assert rivals.main(["--page-only"]) == 0
    assert "##" not in (here / "rivals.md").read_text()
