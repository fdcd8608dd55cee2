"""Naive and joint results are found beside a run where they are of the same stream."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spacenet.experiments.run import RunData
from spacenet.report.page.build import page_from_folders
from spacenet.report.page.references import find_references, reference_section
from tests.report.made_up import metrics, run_data
from tests.report.page.test_build import save_run


def saved(folder: Path, method: str = "spacenet", seed: int = 0, **over: Any) -> RunData:
    run = run_data(metrics(method=method, seed=seed, **over))
    save_run(folder, run)
    return replace(run, folder=folder)


def acc_of(run: RunData) -> dict[str, list[float]]:
    return {each.method: list(each.accuracies) for each in find_references([run])}


def test_without_references_the_section_says_how_to_get_them() -> None:
    section = reference_section([run_data()])
    assert section.tables[0].rows == [
        ["chance", "16.7", "guessing one of 6 classes"],
        ["spacenet", "80.0", "this result"],
    ]
    ((purpose, line),) = section.commands
    assert "No result of naive and joint" in purpose
    assert line == "spacenet compare split-mnist --methods naive,spacenet,joint"


def test_data_given_in_python_has_no_command() -> None:
    run = run_data()
    own = replace(run, config=replace(run.config, stream=replace(run.config.stream, name="custom")))
    assert not reference_section([own]).commands


def test_the_methods_of_a_comparison_are_found(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = saved(tmp_path / "spacenet" / f"seed-{seed}", seed=seed)
        saved(tmp_path / "naive" / f"seed-{seed}", "naive", seed, acc=20.0)
        saved(tmp_path / "joint" / f"seed-{seed}", "joint", seed, acc=95.0 + 2 * seed)
    assert acc_of(run) == {"naive": [20.0, 20.0], "joint": [95.0, 97.0]}
    page = page_from_folders([tmp_path / "spacenet"])
    section = next(section for section in page.sections if section.title == "Is this good?")
    assert [row[:2] for row in section.tables[0].rows] == [
        ["chance", "16.7"],
        ["naive", "20.0 ± 0.0"],
        ["spacenet", "80.0 ± 0.0"],
        ["joint", "96.0 ± 1.4"],
    ]
    assert section.notes == ["spacenet covers 79 % of the way from naive to joint."]
    assert not section.commands


def test_other_runs_beside_it_are_found_and_the_most_seeds_count(tmp_path: Path) -> None:
    run = saved(tmp_path / "mine")
    saved(tmp_path / "one", "naive", acc=19.0)
    for seed in (0, 1):
        saved(tmp_path / "two" / f"seed-{seed}", "naive", seed, acc=21.0)
    assert acc_of(run) == {"naive": [21.0, 21.0]}
    missing = reference_section([run])
    assert missing.commands[0][1].endswith("--methods spacenet,joint")


@pytest.mark.parametrize("what", ["other stream", "other labels", "stopped", "unfinished", "not ours"])
def test_what_cannot_be_compared_is_left_out(tmp_path: Path, what: str) -> None:
    run, folder = saved(tmp_path / "mine"), tmp_path / "other"
    naive = saved(folder, "naive", stopped="full" if what == "stopped" else None)
    if what == "other stream":
        save_run(folder, replace(naive, config=replace(naive.config, stream=replace(naive.config.stream, tasks="0/1"))))
    if what == "other labels":
        save_run(folder, run_data(metrics(classes=3, method="naive")))
    if what == "unfinished":
        (folder / "metrics.json").unlink()
    if what == "not ours":
        (folder / "config.toml").write_text("[tool]\nx = 1\n")
    assert acc_of(run) == {}


def test_the_run_beside_it_counts_too() -> None:
    found = find_references([run_data()], run_data(metrics(method="joint", acc=97.0)))
    assert [(each.method, each.accuracies) for each in found] == [("joint", [97.0])]


def test_naive_is_no_reference_for_itself(tmp_path: Path) -> None:
    run = saved(tmp_path / "a", "naive")
    saved(tmp_path / "b", "naive")
    assert acc_of(run) == {}
    assert reference_section([run]).commands[0][1].endswith("--methods naive,joint")
