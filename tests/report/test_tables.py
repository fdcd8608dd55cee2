import io
from typing import Any

from rich.console import Console, RenderableType

from spacenet.report.tables import run_report, seeds_table, table


def text(drawn: RenderableType, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(drawn)
    return console.export_text()


def metrics(**over: Any) -> dict[str, Any]:
    layer = {"name": "hidden1", "units": 400, "used": 300, "reserved": 200, "unused": 100, "connections": 50000}
    return {
        "stream": "split-mnist",
        "method": "spacenet",
        "seed": 3,
        "evaluated_on": "test set",
        "tasks_learned": 2,
        "acc": 75.5,
        "bwt": -12.25,
        "forgetting": 12.25,
        "fwt": 0.0,
        "seconds": 2.5,
        "matrix": [[99.0, 0.0], [86.75, 64.25]],
        "task_incremental": {"acc": 98.0},
        "tasks": [{"index": 0, "labels": ["0", "1"]}, {"index": 1, "labels": ["2", "3"]}],
        "layers": [layer],
        "connections": 50000,
        "bytes_kept": 2048,
        "images_kept": 0,
    } | over


def test_a_run_report_shows_the_matrix_without_the_future() -> None:
    shown = text(run_report(metrics()))
    first = next(line for line in shown.splitlines() if line.split()[:1] == ["1"])
    assert first.split() == ["1", "99.0"]
    for words in ("75.50 %", "-12.25", "98.00 %", "50,000", "2.0 KiB", "spacenet on split-mnist, seed 3"):
        assert words in shown


def test_seeds_end_in_mean_and_deviation() -> None:
    shown = text(seeds_table([metrics(seed=1, acc=76.0), metrics(seed=0, acc=74.0)]), width=80)
    rows = [line.split() for line in shown.splitlines() if line.strip()]
    assert [row[0] for row in rows[-3:]] == ["0", "1", "mean"]
    assert "75.00 ± 1.41" in shown


def test_without_a_network_there_is_no_space_to_show() -> None:
    assert "The space" in text(run_report(metrics()))
    assert "The space" not in text(run_report(metrics(layers=[])))


def test_many_classes_are_abbreviated() -> None:
    tasks = [{"index": 0, "labels": [str(i) for i in range(20)]}]
    assert "1 (0 … 19)" in text(run_report(metrics(tasks=tasks, matrix=[[50.0]])))


def test_nothing_learned() -> None:
    assert "No task was learned" in text(run_report({"tasks_learned": 0}))


def test_figures_do_not_wrap() -> None:
    drawn = table("t", ["name", "a long heading"], [["x", "12.34 ± 5.67"]])
    assert "12.34 ± 5.67" in text(drawn, width=24)
