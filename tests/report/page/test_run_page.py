from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch

from spacenet.errors import RunError
from spacenet.experiments.run import METRICS, MODEL, Run, create_folder
from spacenet.report.page import run_page
from spacenet.report.page.build import build_page
from spacenet.report.page.run_page import numbers
from spacenet.report.plots.plot import Plot
from spacenet.report.run_data import RunFacts, load_run
from tests.experiments.support import config


def test_the_numbers_are_the_runs(run_folder: Path) -> None:
    facts = load_run(run_folder)
    shown = {number.name: number.value for number in build_page([run_folder]).numbers}
    assert shown["ACC"] == f"{facts.metrics['acc']:.1f} %"
    assert shown["ACC, task told"] == f"{facts.metrics['task_incremental']['acc']:.1f} %"
    assert shown["BWT"] == f"{facts.metrics['bwt']:+.1f}".replace("-", "−")
    assert shown["Forgetting"] == f"{facts.metrics['forgetting']:.1f}"
    assert shown["Connections"] == f"{facts.metrics['connections']:,}"
    assert shown["Model file"] == f"{(run_folder / MODEL).stat().st_size / 1024:.1f} KiB"
    assert shown["Time"] == f"{facts.metrics['seconds']:.1f} s"


def test_its_parts_and_their_figures(run_folder: Path) -> None:
    facts, page = load_run(run_folder), build_page([run_folder])
    assert [part.title for part in page.sections] == [
        "What it remembers",
        "What it confuses",
        "The space",
        "How it was made",
    ]
    assert all(part.exhibits for part in page.sections[:3])
    data = {e.plot.name: e.data for part in page.sections for e in part.exhibits if e.data}
    assert data["accuracy-matrix"].rows[-1][1] == f"{facts.metrics['matrix'][-1][0]:.1f}"
    assert facts.analysis.confusion is not None
    assert data["class-confusion"].rows[2][3] == str(int(facts.analysis.confusion[2, 2]))
    assert data["capacity-map"].rows[0][1] == "30"
    assert not page.alarms


def test_of_several_seeds_it_shows_the_spread(seeds_folder: Path) -> None:
    page = build_page([seeds_folder])
    runs = [load_run(seeds_folder / f"seed-{seed}") for seed in (3, 4)]
    assert page.title == "spacenet on npz, 2 seeds"
    assert page.numbers == numbers(runs)
    accuracies = [facts.metrics["acc"] for facts in runs]
    assert page.numbers[0].value == f"{mean(accuracies):.1f} %"
    assert page.numbers[0].std == f"{stdev(accuracies):.1f}"
    rows = page.sections[0].tables[0].rows
    assert [row[0] for row in rows] == ["3", "4"]
    assert rows[1][1] == f"{runs[1].metrics['acc']:.2f}"
    assert page.sections[0].notes == ["The pictures show seed 3."]
    assert " --seed 3 " in page.sections[-1].commands[0].line
    assert page.sections[-1].commands[0].line.endswith(" --seeds 2")


def test_a_seed_that_is_missing_is_said(seeds_folder: Path, tmp_path: Path) -> None:
    for seed in (3, 4):
        place = tmp_path / "runs" / f"seed-{seed}"
        place.mkdir(parents=True)
        for file in (seeds_folder / f"seed-{seed}").iterdir():
            (place / file.name).write_bytes(file.read_bytes())
    (tmp_path / "runs" / "seed-3" / METRICS).unlink()
    page = build_page([tmp_path / "runs"])
    assert page.title == "spacenet on npz, seed 4"
    assert "not finished" in page.alarms[0]
    with pytest.raises(RunError, match="not finished"):
        build_page([tmp_path / "runs" / "seed-3"])


def test_what_went_wrong_stands_at_the_top(tmp_path: Path) -> None:
    full = config(tmp_path, net={"hidden": [30, 16]})
    create_folder(full, tmp_path / "run")
    with pytest.raises(Exception, match="hidden2 is full"):
        Run(tmp_path / "run").execute()
    stopped, warning = build_page([tmp_path / "run"]).alarms
    assert stopped.startswith("Stopped early, after 2 of 3 tasks: task 3 was not learned: hidden2 is full")
    assert warning == "Warning: the space holds 2 of the stream's 3 tasks with these settings"


def test_a_method_without_a_space_has_a_page(comparison_folder: Path) -> None:
    page = build_page([comparison_folder / "naive" / "seed-0"])
    assert load_run(comparison_folder / "naive" / "seed-0").model is None
    assert page.sections[0].exhibits


def test_a_method_without_a_network_and_without_epochs_has_a_page(tmp_path: Path) -> None:
    create_folder(config(tmp_path, "gaussian"), tmp_path / "run")
    Run(tmp_path / "run").execute()
    page = build_page([tmp_path / "run"])
    assert "one after another, without a network. Asked" in page.lead
    assert page.sections[0].exhibits
    assert "Connections" not in [number.name for number in page.numbers]
    settings = {(row[1], row[0]) for row in page.sections[-1].tables[1].rows}
    assert ("options", "directions") in settings
    assert {name for part, name in settings if part in ("net", "training")} == {"device", "threads"}


def test_what_is_kept_of_each_class_has_a_part_of_its_own(density_folder: Path) -> None:
    facts, page = load_run(density_folder), build_page([density_folder])
    kept = next(number for number in page.numbers if number.name == "Kept")
    assert kept.meaning == "between tasks, with 0 old samples and 74 numbers for each class"
    part = next(part for part in page.sections if part.title == "What it keeps of each class")
    assert part.notes[0].startswith("It keeps beside the network 2 Gaussians × 3 directions on 8 inputs: 74 numbers")
    assert "--validation" in part.notes[1]
    assert part.exhibits[0].plot.name == "accuracy-against-memory"
    assert part.exhibits[0].data is not None
    assert part.exhibits[0].data.rows[-1] == ["3", "74", f"{facts.metrics['acc']:.2f}"]
    assert len(part.exhibits[0].data.rows) == 4
    many = replace(facts, analysis=replace(facts.analysis, confusion=torch.full((6, 6), 1_000)))
    notes = [note for part in run_page.run_page([many]).sections for note in part.notes]
    assert [note for note in notes if "At most 2,000 samples of each task" in note]
    assert not [note for note in part.notes if "At most" in note]


def test_another_run_beside_it(comparison_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = (comparison_folder / name / "seed-0" for name in ("spacenet", "static-sparse"))
    seen: list[RunFacts | None] = []

    def plots(facts: RunFacts, beside: RunFacts | None = None) -> list[Plot]:
        seen.extend((facts, beside))
        return []

    monkeypatch.setattr(run_page, "space_pictures", plots)
    page = build_page([folder], other)
    assert [facts and facts.folder for facts in seen] == [folder, other]
    assert not page.sections[2].exhibits
