import json
from pathlib import Path

import pytest

from spacenet.errors import RunError, SettingsError
from spacenet.report.comparison import COLUMNS, cells
from spacenet.report.comparison_data import load_comparison
from spacenet.report.page.build import build_page
from tests.report.page.conftest import METHODS


def test_the_table_holds_every_row_and_column(comparison_folder: Path) -> None:
    page, facts = build_page([comparison_folder]), load_comparison(comparison_folder)
    table = page.sections[0].tables[0]
    assert sorted(table.columns) == sorted(COLUMNS)
    assert [sorted(row) for row in table.rows] == [sorted(cells(row)) for row in facts.rows]
    assert {row[0] for row in table.rows} == set(METHODS)
    assert page.plots
    assert not page.alarms


def test_every_method_can_be_run_again(comparison_folder: Path) -> None:
    made = build_page([comparison_folder]).sections[-1]
    lines = made.commands[0].line.splitlines()
    assert len(lines) == len(METHODS) == len(made.files)
    assert all(line.startswith("spacenet run --method ") and line.endswith("--seeds 2") for line in lines)
    assert len(made.tables[0].rows) == 1  # all were made in the same way


def test_folders_put_together_by_hand(comparison_folder: Path, hostile_folder: Path) -> None:
    page = build_page([comparison_folder / "er", comparison_folder / "naive" / "seed-1"])
    assert [row[0] for row in page.sections[0].tables[0].rows] == ["naive", "er"]
    with pytest.raises(RunError, match="not of one stream"):
        build_page([comparison_folder / "er", hostile_folder])
    with pytest.raises(SettingsError, match="beside: this goes with one run"):
        build_page([comparison_folder], beside=hostile_folder)


def test_who_took_no_part_is_said_once(comparison_folder: Path) -> None:
    runs = [comparison_folder / "er", comparison_folder / "naive"]
    assert build_page(runs, failures=["pnn: too small"]).alarms == ["Left out: pnn: too small"]
    noted = comparison_folder / "comparison.json"
    noted.write_text(json.dumps({"failures": ["ewc seed 5: of all things", "er seed 0: an old story"]}))
    try:
        assert build_page([comparison_folder]).alarms == ["Left out: ewc seed 5: of all things"]
    finally:
        noted.unlink()
