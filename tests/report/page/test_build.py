"""Pages show what runs and comparisons hold, with or without folders."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch

from spacenet.errors import RunError, SettingsError
from spacenet.experiments.comparison import ComparisonData, Failure
from spacenet.experiments.run import CONFIG, METRICS, MODEL, RunData
from spacenet.report.page.build import (
    comparison_page,
    default_page_path,
    page_from_folders,
    run_metrics,
    run_page,
    save_figures,
    save_tables,
)
from spacenet.report.page.page import Page
from spacenet.report.tables import comparison_table
from tests.report.made_up import complete_run, density_run, made_up_mistakes, metrics, run_data
from tests.report.page.conftest import METHODS


def test_the_metrics_are_those_of_the_run(tmp_path: Path) -> None:
    shown = {metric.name: metric.value for metric in run_page([complete_run(tmp_path)]).metrics}
    assert shown == {
        "ACC": "80.0 %",
        "Task-incremental ACC": "99.0 %",
        "BWT": "−17.0",
        "Forgetting": "17.0",
        "Connections": "288",
        "Model file": "1.5 KiB",
        "Memory": "2.0 KiB",
        "Time": "2.5 s",
    }


def test_its_sections_and_their_data(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    page = run_page([run])
    titles = [section.title for section in page.sections if not section.empty]
    assert titles == [
        "Accuracy",
        "Is this good?",
        "Precision, recall and calibration",
        "Confusion",
        "Wrong predictions",
        "Network capacity",
        "How to reproduce it",
    ]
    assert [[plot.name for plot in section.plots] for section in page.sections[:5]] == [
        ["accuracy-matrix", "accuracy-history"],
        [],
        ["class-scores", "calibration"],
        ["task-confusion", "class-confusion"],
        ["mistakes"],
    ]
    tables = {plot.name: plot.table for plot in page.plots if plot.table}
    assert tables["accuracy-matrix"].rows[-1][1] == "70.0"
    assert run.analysis.confusion is not None
    assert tables["class-confusion"].rows[2][3] == str(int(run.analysis.confusion[2, 2]))
    assert tables["capacity-map"].rows[0][1] == "30"
    assert not page.notices
    assert page.lead.startswith("6 classes in 3 tasks, learned in sequence with the network mlp.")


@pytest.mark.usefixtures("_undrawn")
def test_wide_tables_are_left_out() -> None:
    many = run_data(metrics([[50.0] * 20] * 20), [[1] * 40] * 40)
    page = run_page([many])
    assert {plot.name for plot in page.plots} >= {"accuracy-matrix", "class-confusion"}
    assert "<summary>Data</summary>" not in page.to_html()
    assert "<summary>Data</summary>" in run_page([run_data()]).to_html()


@pytest.mark.usefixtures("_undrawn")
def test_several_seeds_are_shown_with_their_standard_deviation(tmp_path: Path) -> None:
    runs = [complete_run(tmp_path / f"seed-{seed}", seed=seed, acc=80.0 + seed) for seed in (3, 4)]
    page = run_page(runs, failures=[Failure("spacenet", 5, "out of memory")])
    assert page.title == "spacenet on split-mnist, 2 seeds"
    assert page.metrics == run_metrics(runs)
    accuracies = [run.metrics["acc"] for run in runs]
    assert page.metrics[0].value == f"{mean(accuracies):.1f} %"
    assert page.metrics[0].std == f"{stdev(accuracies):.1f}"
    assert [line[0] for line in page.sections[0].tables[0].rows] == ["3", "4", "mean ± std"]
    assert {plot.caption for plot in page.sections[0].plots} == {
        "Mean over all 2 seeds.",
        "Mean over all 2 seeds; shaded: ± standard deviation.",
    }
    assert all(plot.caption for plot in page.plots)
    assert "Seed 3 of 2 seeds." in page.to_html()
    assert page.notices == ["Left out: spacenet seed 5: out of memory"]
    assert page.sections[-1].commands[0][1] == "spacenet run split-mnist --method spacenet --seed 3 --seeds 2"
    assert page.footer == f"Made by spacenet 0.1.0 from the runs in {tmp_path}."


def test_warnings_and_an_early_stop_are_at_the_top() -> None:
    run = run_data(metrics([[90.0, 0.0, 0.0], [80.0, 90.0, 0.0]], stopped="task 3 was not learned", warnings=["small"]))
    assert run_page([run]).notices == [
        "Stopped early, after 2 of 3 tasks: task 3 was not learned",
        "Warning: small",
    ]
    other = run_data(metrics(seed=1))
    assert run_page([run, other]).notices[1] == "Seed 0: Warning: small"


def test_a_run_in_memory_needs_no_folder() -> None:
    page = run_page([run_data()])
    assert "Model file" not in [metric.name for metric in page.metrics]
    assert page.footer == "Made by spacenet 0.1.0."
    assert page.to_html()


def test_a_learned_run_in_memory_has_the_size_of_its_model(learned_run: RunData) -> None:
    assert learned_run.folder is None
    assert "Model file" in [metric.name for metric in run_page([learned_run]).metrics]
    assert len(run_page([learned_run]).plots) >= 12


def test_a_method_without_a_network_shows_no_settings_of_one() -> None:
    page = run_page([run_data(metrics(layers=[]))])
    assert "without a network" in page.lead
    assert "Connections" not in [metric.name for metric in page.metrics]
    settings = {(section, name) for name, section, _ in page.sections[-1].tables[1].rows}
    assert {name for section, name in settings if section in ("net", "training")} == {"device", "threads"}
    assert ("preprocessing", "centering") in settings
    assert ("stream", "name") in settings


def test_class_statistics_have_a_section() -> None:
    run = density_run()
    page = run_page([run])
    memory = next(metric for metric in page.metrics if metric.name == "Memory")
    assert memory.meaning == "kept between tasks, with 0 stored samples and 74 values per class"
    section = next(section for section in page.sections if section.title == "Class statistics")
    assert section.notes[0].startswith("Besides the network, the method keeps 2 Gaussians × 3 directions on 8 inputs")
    assert "hold out validation data" in section.notes[1]
    (plot,) = section.plots
    assert plot.table is not None
    assert plot.table.rows[-1] == ["3", "75", "79.00"]
    many = replace(run, analysis=replace(run.analysis, confusion=torch.full((6, 6), 1_000)))
    notes = [note for section in run_page([many]).sections for note in section.notes]
    assert [note for note in notes if "At most 2,000 samples of each task" in note]
    assert not [note for note in section.notes if "At most" in note]


def test_nothing_learned_is_an_error() -> None:
    with pytest.raises(RunError, match="no task was learned"):
        run_page([run_data({"tasks_learned": 0, "seed": 0})])


def test_the_results_of_a_comparison(comparison: ComparisonData) -> None:
    page = comparison_page(comparison)
    assert page.title == "split-mnist: 5 methods compared"
    assert page.sections[0].tables == [comparison_table(comparison)]
    assert len(page.plots) == 6
    assert page.notices == ["Left out: ewc seed 5: diverged"]
    made = page.sections[-1]
    lines = made.commands[0][1].splitlines()
    assert lines[0] == "spacenet run split-mnist --method naive --seeds 2"
    assert len(lines) == len(METHODS) == len(made.files)
    assert len(made.tables[0].rows) == 1  # all were made in the same way


def test_data_given_in_python_has_no_command_line(comparison: ComparisonData) -> None:
    run = run_data()
    own = replace(run, config=replace(run.config, stream=replace(run.config.stream, name="custom")))
    assert [line for _, line in run_page([own]).sections[-1].commands] == ["spacenet run --config config.toml"]
    runs = {"spacenet": [own]}
    assert not comparison_page(replace(comparison, runs=runs, rows=comparison.rows[3:4])).sections[-1].commands


def save_run(folder: Path, run: RunData) -> Path:
    """Write what a finished run leaves, as far as it is made up."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(run.config.to_toml())
    (folder / METRICS).write_text(json.dumps(run.metrics))
    return folder


def test_folders_of_runs_seeds_and_comparisons(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    for seed in (0, 1):
        save_run(seeds / f"seed-{seed}", run_data(metrics(seed=seed)))
    assert page_from_folders([seeds / "seed-1"]).title == "spacenet on split-mnist, seed 1"
    assert page_from_folders([seeds]).title == "spacenet on split-mnist, 2 seeds"
    other = save_run(tmp_path / "er", run_data(metrics(method="er")))
    assert page_from_folders([seeds, other]).title == "split-mnist: er, spacenet"
    assert default_page_path([seeds]) == seeds / "report.html"
    assert default_page_path([seeds, other]) == Path("report.html")
    with pytest.raises(SettingsError, match="beside: goes with one run"):
        page_from_folders([seeds, other], beside=other)
    with pytest.raises(RunError, match="holds no runs"):
        page_from_folders([tmp_path / "missing"])


def test_a_seed_that_is_not_finished_is_named(tmp_path: Path) -> None:
    for seed in (3, 4):
        save_run(tmp_path / f"seed-{seed}", run_data(metrics(seed=seed)))
    (tmp_path / "seed-3" / METRICS).unlink()
    page = page_from_folders([tmp_path])
    assert page.title == "spacenet on split-mnist, seed 4"
    assert "spacenet seed 3" in page.notices[0]
    assert "not finished" in page.notices[0]
    with pytest.raises(RunError, match="not finished"):
        page_from_folders([tmp_path / "seed-3"])
    (tmp_path / "seed-4" / METRICS).unlink()
    with pytest.raises(RunError, match="no run is finished"):
        page_from_folders([tmp_path])


def test_figures_as_files(pages: dict[str, Page], tmp_path: Path) -> None:
    page = pages["comparison"]
    written = save_figures(page, tmp_path / "new" / "figures")
    assert len(written) == 2 * len(page.plots) == 12
    assert {path.suffix for path in written} == {".svg", ".png"}
    assert all(path.stat().st_size for path in written)


def test_figures_as_pdf_and_tables_as_latex_and_csv(tmp_path: Path) -> None:
    page = run_page([complete_run(tmp_path / "run")])
    assert {path.suffix for path in save_figures(page, tmp_path / "figures", ["pdf"])} == {".pdf"}
    written = {path.name: path.read_text(encoding="utf-8") for path in save_tables(page, tmp_path / "tables")}
    assert {"is-this-good.tex", "class-scores.csv", "accuracy-matrix.tex", "how-to-reproduce-it-1.tex"} <= set(written)
    assert r"\begin{tabular}{lrrr}" in written["accuracy-matrix.tex"]
    assert r"\toprule" in written["accuracy-matrix.tex"]
    assert written["accuracy-matrix.csv"].splitlines()[-1] == "3,70.0,75.0,95.0"


def test_samples_that_are_no_images_are_shown_by_their_values() -> None:
    section = next(
        section
        for section in run_page([run_data(metrics(), mistakes=made_up_mistakes((20,)))]).sections
        if section.title == "Wrong predictions"
    )
    assert not section.plots
    (table,) = section.tables
    assert table.columns[4:] == [f"x{number}" for number in range(1, 9)]
    assert table.rows[0][:4] == ["test sample 0", "0", "1", "99.0"]


def test_a_run_of_an_older_version_has_its_page() -> None:
    titles = [
        section.title
        for section in run_page([run_data(metrics(), [[9, 1, 0, 0, 0, 0]] * 6)]).sections
        if not section.empty
    ]
    assert "Confusion" in titles
    assert "Wrong predictions" not in titles


def test_the_settings_file_is_on_the_page(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    assert (tmp_path / MODEL).is_file()
    assert run_page([run]).sections[-1].files == [(CONFIG, run.config.to_toml())]
