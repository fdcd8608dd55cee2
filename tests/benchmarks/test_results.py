import shlex
from pathlib import Path

import pytest

from benchmarks import results
from spacenet.commands.run import _parse
from spacenet.experiments.batch import execute
from spacenet.experiments.presets import preset
from spacenet.experiments.seeds import create_folders


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = """
[[section]]
title = "Digits"
text = "Two tasks."
per_task = true
[[section.row]]
name = "digits"
label = "`spacenet`"
command = "split-digits --seeds 2"
paper = { acc = [50.0, 1.5], bwt = [-10.0] }
[[section.row]]
name = "missing"
label = "`naive`"
command = "split-digits --method naive"
"""
    (tmp_path / "rows.toml").write_text(rows)
    monkeypatch.setattr(results, "HERE", tmp_path)
    monkeypatch.setattr(results, "PAGE", tmp_path / "results.md")
    return tmp_path


def test_the_page_sets_the_papers_figures_beside_ours(here: Path) -> None:
    config = preset("split-digits", "spacenet", {"data": {"tasks": "0,1/2,3"}, "training": {"epochs": 1}})
    folders = create_folders(config, [0, 1], here / "runs")
    accs = [outcome.metrics["acc"] for folder in folders if (outcome := execute(folder)).metrics is not None]
    assert results.main(["collect", "digits", str(here / "runs")]) == 0
    page = (here / "results.md").read_text()
    assert f"| `spacenet` | {sum(accs) / 2:.2f} ± " in page
    assert "| 50.00 ± 1.50 | -10.00 | 2 |" in page
    assert "| `naive` | not run yet |" in page
    assert "| task 1 | task 2 | sd over tasks |" in page
    assert "spacenet run split-digits --seeds 2" in page


def test_a_row_that_is_not_there_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main(["run", "nothing"]) == 2
    assert "there is no row 'nothing'; there are digits, missing" in capsys.readouterr().err


def test_every_row_of_the_real_page_is_a_command_that_is_understood() -> None:
    rows = [row for section in results.sections() for row in section["row"]]
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        options, _, config, _ = _parse(shlex.split(row["command"]))
        assert options.seeds > 1
        assert row["command"].split()[0] == config.stream
