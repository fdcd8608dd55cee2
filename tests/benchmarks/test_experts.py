import json
from pathlib import Path

import pytest

from benchmarks import experts, results


def test_it_measures_the_parts_alone_and_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "experts.json"
    assert experts.main(["--tiny", "--classes-per-task", "10", "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    assert len(parts) == 3 + len(experts.WEIGHTS)
    assert all(0 <= value <= 100 for figures in parts.values() for value in figures.values())
    assert "icifar-100, 2 tasks, seed 0, held-out" in capsys.readouterr().out


def test_on_the_test_set_only_the_presets_weight_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "experts.json"
    assert experts.main(["--tiny", "--held-out", "0", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    assert list(figures["parts"])[3:] == ["both, weight 0.15"]
    assert figures["parts"]["both, weight 0.15"]["acc"] == pytest.approx(figures["metrics"]["acc"])
    assert "test set" in capsys.readouterr().out


def test_weights_of_own_statistics_are_chosen_in_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "experts.json"
    tiny = ["--tiny", "--classes-per-task", "10", "--own-statistics", "--json", str(path)]
    assert experts.main(tiny) == 0
    parts = json.loads(path.read_text())["parts"]
    best, chosen = (
        next(name for name in parts if name.startswith(f"all{how}, weights"))
        for how in ("", ", as chosen after each task")
    )
    together = [parts[name]["acc"] for name in parts if "weight" in name or name == experts.FOUR]
    assert parts[best]["acc"] == max(together)
    assert parts[best]["acc"] >= parts[chosen]["acc"]
    assert experts.main([*tiny, "--held-out", "0"]) == 0
    figures = json.loads(path.read_text())
    assert figures["parts"]["all, weights 0.15 and 0.05"]["acc"] == pytest.approx(figures["metrics"]["acc"])


def test_other_orders_and_cuts_are_kept_seed_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (experts, results):
        monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(results, "row_named", lambda name: {"command": f"icifar-100 {name}"})
    cut = ["--first-classes", "6", "--classes-per-task", "7", "--shuffle-classes", "1993", "--reads", "all"]
    for seed in ("1", "0"):
        kept = ["--keep", "parts", "--keep-run", "row", "--seed", seed]
        assert experts.main(["--tiny", "--held-out", "0", *cut, *kept]) == 0
    runs, parts = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("row", "parts"))
    assert [each["seed"] for each in runs["seeds"]] == [each["seed"] for each in parts["seeds"]] == [0, 1]
    for run, part in zip(runs["seeds"], parts["seeds"], strict=True):
        assert len(run["matrix"]) == 3
        assert run["acc"] == pytest.approx(part["parts"]["both, weight 0.15"]["acc"])
    assert runs["command"] == "spacenet run icifar-100 row"


def test_the_time_of_a_run_that_shared_the_gpu_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experts, "HERE", tmp_path)
    for seed, seconds in ((0, 240.0), (1, 310.0)):
        parts = {experts.UPRIGHT: {"acc": 60.0, "task_il_acc": 90.0}}
        found = {"date": "2026-11-19", "hardware": "GPU", "parts": parts, "metrics": {"seed": seed}}
        experts.keep("row", {**found, "seconds": seconds, "shared": seed == 1})
    figures = json.loads((tmp_path / "row.json").read_text())
    assert "| 240 s | 2 |" in results.TABLES["parts"]([({"label": "a row"}, figures)])
    figures["seeds"] = figures["seeds"][1:]
    assert "s |" not in results.TABLES["parts"]([({"label": "a row"}, figures)]).splitlines()[-1]
