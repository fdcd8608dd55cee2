from dataclasses import replace

from spacenet.experiments.analysis import Analysis
from spacenet.report.plots.space import space_pictures
from spacenet.report.run_data import RunFacts


def test_a_run_has_all_pictures_in_order_each_small_and_described(spacenet_run: RunFacts, static_run: RunFacts) -> None:
    plots = space_pictures(spacenet_run, static_run)
    assert [plot.name for plot in plots] == [
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


def test_what_makes_no_sense_is_left_out(spacenet_run: RunFacts, static_run: RunFacts) -> None:
    names = [plot.name for plot in space_pictures(static_run)]
    assert names == ["capacity-map", "connections-per-task", "activations", "inputs"]
    metrics = {**static_run.metrics}
    assert space_pictures(replace(static_run, model=None, metrics=metrics, analysis=Analysis(None, {}, ()))) == []
