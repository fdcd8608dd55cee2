from dataclasses import replace

import pytest

from spacenet.report.plots.connections import (
    LinkUse,
    connections_data,
    connections_picture,
    rewiring_data,
    rewiring_picture,
)
from spacenet.report.run_data import RunFacts
from tests.report.plots.space_support import words_in


def test_connections_are_counted_in_the_ledger(spacenet_run: RunFacts) -> None:
    links = connections_data(spacenet_run)
    assert links is not None
    assert spacenet_run.model is not None
    for link in links:
        owner = spacenet_run.model.method.ledger.connections[f"{link.source}-{link.target}"].owner.tolist()
        assert link.counts == tuple(owner.count(task) for task in range(3))
    assert [link.positions for link in links] == [16 * 30, 30 * 30, 30 * 6]
    assert sum(link.total for link in links) == spacenet_run.metrics["connections"]
    assert connections_data(replace(spacenet_run, model=None)) is None


def test_the_bars_say_what_they_count(spacenet_run: RunFacts) -> None:
    links = connections_data(spacenet_run)
    assert links is not None
    plot = connections_picture(links)
    assert plot.title == "288 connections, 18.5 % of all possible; each task adds 96"
    assert "120 of 480 (25.0 %), 40 each" in words_in(plot)
    assert "task 3" in words_in(plot)
    uneven = connections_picture((LinkUse("input", "hidden1", (30, 0, 20), 100), LinkUse("a", "b", (0, 0, 0), 10)))
    assert uneven.title == "50 connections, 45.5 % of all possible; tasks add 0 to 30"
    assert "task 1: 30" in words_in(uneven)
    alone = connections_picture((LinkUse("input", "hidden1", (30,), 100),))
    assert alone.title == "30 connections, 30.0 % of all possible"


def test_many_tasks_in_many_layers_are_a_small_picture() -> None:
    links = tuple(LinkUse("a", f"b{number}", (50,) * 100, 100_000) for number in range(30))
    assert len(connections_picture(links).svg()) < 150_000


def test_the_lines_are_what_the_run_noted(spacenet_run: RunFacts, static_run: RunFacts) -> None:
    data = rewiring_data(spacenet_run)
    assert data is not None
    for number, line in data.moved.items():
        noted = [100 * epoch["moved"] for epoch in spacenet_run.metrics["tasks"][number - 1]["epochs"]]
        assert line == pytest.approx([0, *noted])
    assert list(data.moved) == [1, 2, 3]
    written = words_in(rewiring_picture(data))
    assert f"task 3: {data.moved[3][-1]:.0f} %" in written
    assert rewiring_data(static_run) is None


def test_tasks_that_had_nothing_to_move_have_no_line(spacenet_run: RunFacts) -> None:
    epochs = [[{"moved": 0.25}, {"moved": 0.5}], [{"moved": float("nan")}] * 2, [{"moved": 0.0}, {"moved": 0.75}]]
    tasks = [{"index": number, "epochs": each} for number, each in enumerate(epochs)]
    data = rewiring_data(replace(spacenet_run, metrics={"tasks": tasks}))
    assert data is not None
    assert data.moved == {1: (0, 25, 50), 3: (0, 0, 75)}
    plot = rewiring_picture(data)
    assert plot.title == "When training ends, 50 to 75 % of a task's connections lie elsewhere than at first"
    assert "task 2" not in words_in(plot)
