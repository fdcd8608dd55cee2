import json
from pathlib import Path

import pytest
from spacenet.experiments.seeds import create_folders, save_summary, seed_folders

from spacenet.errors import RunError
from tests.experiments.support import config


def test_folders_are_not_used_twice(tmp_path: Path) -> None:
    create_folders(config(tmp_path), range(2), tmp_path / "runs")
    assert [folder.name for folder in seed_folders(tmp_path / "runs")] == ["seed-0", "seed-1"]
    with pytest.raises(RunError, match="holds runs already"):
        create_folders(config(tmp_path), range(2), tmp_path / "runs")


def test_the_summary_has_mean_and_standard_deviation(tmp_path: Path) -> None:
    figures = [{"acc": acc, "bwt": -1.0, "task_incremental": {"acc": 99.0}, "seconds": 1.0} for acc in (70.0, 74.0)]
    common = {"stream": "s", "method": "m", "evaluated_on": "test set", "versions": {}}
    save_summary(tmp_path, [{**common, **f, "seed": seed} for seed, f in enumerate(figures)])
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert summary["acc"]["mean"] == 72.0
    assert summary["acc"]["sd"] == pytest.approx(2.8284, abs=1e-3)
