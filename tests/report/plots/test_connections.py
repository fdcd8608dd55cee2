from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spacenet.experiments.run import RunData
from spacenet.report.plots import connections
from spacenet.report.plots.connections import (
    LinkUsage,
    connections_plot,
    link_usage,
    moved_connections,
    rewiring_plot,
)
from spacenet.report.plots.plot import Plot
from tests.report.made_up import complete_run, words_in


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path)


def test_connections_are_counted_in_the_ledger(run: RunData) -> None:
    assert run.model is not None
    ledger, links = run.model.method.ledger, link_usage(run.model)
    assert [link.name for link in links] == ["input → hidden1", "hidden1 → hidden2", "hidden2 → output"]
    for link in links:
        owner = ledger.connections[link.name.replace(" → ", "-")].owner.tolist()
        assert link.counts == [owner.count(task) for task in range(3)]
    assert [link.positions for link in links] == [16 * 30, 30 * 30, 30 * 6]
    assert sum(link.total for link in links) == run.metrics["connections"]
    assert connections_plot(replace(run, model=None)) is None


@pytest.fixture
def plot_links(run: RunData, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plot]:
    """The plot of made-up links."""

    def plot(*links: LinkUsage) -> Plot:
        monkeypatch.setattr(connections, "link_usage", lambda model: links)
        made = connections_plot(run)
        assert made is not None
        return made

    return plot


def test_the_bars_say_what_they_count(run: RunData, plot_links: Callable[..., Plot]) -> None:
    plot = connections_plot(run)
    assert plot is not None
    assert plot.title == "288 connections, 18.5 % of all possible; each task adds 96"
    assert "120 of 480 (25.0 %), 40 each" in words_in(plot)
    assert "task 3" in words_in(plot)
    uneven = plot_links(LinkUsage("input → hidden1", (30, 0, 20), 100), LinkUsage("a → b", (0, 0, 0), 10))
    assert uneven.title == "50 connections, 45.5 % of all possible; tasks add 0 to 30"
    assert "task 1: 30" in words_in(uneven)
    alone = plot_links(LinkUsage("input → hidden1", (30,), 100))
    assert alone.title == "30 connections, 30.0 % of all possible"


def test_many_tasks_in_many_layers_are_a_small_plot(plot_links: Callable[..., Plot]) -> None:
    links = [LinkUsage(f"a → b{number}", (50,) * 100, 100_000) for number in range(30)]
    assert len(plot_links(*links).svg()) < 150_000


def test_the_lines_are_what_a_learned_run_recorded(learned_run: RunData, learned_static_run: RunData) -> None:
    moved, plot = moved_connections(learned_run), rewiring_plot(learned_run)
    for number, line in moved.items():
        noted = [100 * epoch["moved"] for epoch in learned_run.metrics["tasks"][number - 1]["epochs"]]
        assert line == pytest.approx([0, *noted])
    assert list(moved) == [1, 2, 3]
    assert plot is not None
    assert f"task 3: {moved[3][-1]:.0f} %" in words_in(plot)
    assert rewiring_plot(learned_static_run) is None


def test_tasks_that_had_nothing_to_move_have_no_line(run: RunData) -> None:
    epochs = [[{"moved": 0.25}, {"moved": 0.5}], [{"moved": float("nan")}] * 2, [{"moved": 0.0}, {"moved": 0.75}]]
    tasks = [{"index": number, "epochs": each} for number, each in enumerate(epochs)]
    run = replace(run, metrics={"tasks": tasks})
    assert moved_connections(run) == {1: [0, 25, 50], 3: [0, 0, 75]}
    plot = rewiring_plot(run)
    assert plot is not None
    assert plot.title == "By the end of training, 50 to 75 % of a task's connections have moved"
    assert "task 2" not in words_in(plot)
