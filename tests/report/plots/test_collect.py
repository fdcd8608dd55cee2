from dataclasses import replace
from pathlib import Path

from spacenet.experiments.analysis import Analysis
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.collect import run_plots
from tests.report.made_up import MATRIX, complete_run, density_run, metrics, run_data


def test_a_run_has_all_plots_in_order_each_small_and_described(tmp_path: Path) -> None:
    plots = run_plots(complete_run(tmp_path), complete_run(tmp_path, "static-sparse"))
    assert [plot.name for plot in plots] == [
        "accuracy-matrix",
        "accuracy-history",
        "task-confusion",
        "class-confusion",
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


def test_class_statistics_have_a_plot() -> None:
    assert "accuracy-against-memory" in [plot.name for plot in run_plots(density_run())]
    assert class_memory_plot(run_data(metrics(MATRIX))) is None
