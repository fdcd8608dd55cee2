from dataclasses import replace
from pathlib import Path

from spacenet.experiments.analysis import Analysis
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.collect import capacity_plots, class_plots, confusion_plots, run_plots
from tests.report.made_up import MATRIX, complete_run, density_run, metrics, run_data


def test_a_run_has_all_plots_in_order_each_small_and_described(tmp_path: Path) -> None:
    plots = run_plots(complete_run(tmp_path), complete_run(tmp_path, "static-sparse"))
    assert [plot.name for plot in plots] == [
        "accuracy-matrix",
        "accuracy-history",
        "class-scores",
        "calibration",
        "task-confusion",
        "class-confusion",
        "mistakes",
        "capacity-map",
        "connections-per-task",
        "rewiring",
        "connections-before-after",
        "activations",
        "inputs",
    ]
    for plot in plots:
        assert len(plot.svg()) < 150_000
        assert any(letter.isdigit() for letter in plot.title)
        assert len(plot.text) > len(plot.title)


def test_plots_without_data_are_left_out(tmp_path: Path) -> None:
    run = replace(complete_run(tmp_path), model=None, analysis=Analysis())
    assert [plot.name for plot in run_plots(run)] == ["accuracy-matrix", "accuracy-history", "rewiring"]
    for task in run.metrics["tasks"]:
        task["epochs"] = []
    assert [plot.name for plot in run_plots(run)] == ["accuracy-matrix", "accuracy-history"]
    single = run_data(metrics([[90.0]], tasks=[{"index": 0, "labels": ["0", "1"], "epochs": []}]), [[9, 1], [1, 9]])
    assert [plot.name for plot in run_plots(single)] == ["class-confusion"]


def test_with_several_seeds_every_plot_says_which_it_shows(tmp_path: Path) -> None:
    runs = [complete_run(tmp_path, seed=seed) for seed in (3, 4)]
    assert runs[0].analysis.confusion is not None
    assert runs[1].analysis.confusion is not None
    plots = {plot.name: plot for plot in [*class_plots(runs), *confusion_plots(runs), *capacity_plots(runs)]}
    assert plots["capacity-map"].caption == plots["activations"].caption == "Seed 3 of 2 seeds."
    assert plots["class-scores"].caption == "The test samples of all 2 seeds together."
    table = plots["class-confusion"].table
    assert table is not None
    assert table.rows[2][3] == str(int(runs[0].analysis.confusion[2, 2] + runs[1].analysis.confusion[2, 2]))
    assert not any(plot.caption for plot in run_plots(runs[0]))


def test_class_statistics_have_a_plot() -> None:
    assert "accuracy-against-memory" in [plot.name for plot in run_plots(density_run())]
    assert class_memory_plot(run_data(metrics(MATRIX))) is None
