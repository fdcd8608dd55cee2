"""Tables for the terminal. There is one way to draw a table here; every command uses it."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spacenet.data.datasets import DatasetListing as Listing
from spacenet.experiments.seeds import seed_figures, seeds_summary

Metrics = Mapping[str, Any]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column is text and whose others are figures."""
    drawn = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="left" if number == 0 else "right", no_wrap=number > 0)
    for row in rows:
        drawn.add_row(*row)
    return drawn


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def mean_std_text(center: float | None = None, sd: float | None = None) -> str:
    """A mean, ± its standard deviation where there is one; nothing if there is neither."""
    if center is None:
        return ""
    return f"{center:.2f}" if sd is None else f"{center:.2f} ± {sd:.2f}"


def run_report(metrics: Metrics) -> RenderableType:
    """The accuracy matrix, the space where there is one, and the summary of one run."""
    if not metrics["tasks_learned"]:
        return Text("No task was learned.")
    space = [space_table(metrics)] if metrics["layers"] else []
    return Group(matrix_table(metrics), *space, summary_table(metrics))


def matrix_table(metrics: Metrics) -> Table:
    """The accuracy matrix R; tasks still to come are left blank."""
    tasks = metrics["tasks"]
    columns = ["after task", *(f"{task['index'] + 1} ({_classes(task['labels'])})" for task in tasks)]
    rows = [
        [str(j + 1), *(f"{value:.1f}" if i <= j else "" for i, value in enumerate(row[: len(tasks)]))]
        for j, row in enumerate(metrics["matrix"])
    ]
    return table("Accuracy in % on task … (its classes), without being told the task", columns, rows)


def space_table(metrics: Metrics) -> Table:
    """What each layer holds."""
    columns = ["layer", "units", "used", "reserved", "unused", "connections in"]
    fields = ("units", "used", "reserved", "unused", "connections")
    rows = [[layer["name"], *(f"{layer[field]:,}" for field in fields)] for layer in metrics["layers"]]
    return table("The space", columns, rows)


def summary_table(metrics: Metrics) -> Table:
    """The figures of one run."""
    rows = [
        ["ACC", f"{metrics['acc']:.2f} %", "mean accuracy over all tasks in the end"],
        ["BWT", f"{metrics['bwt']:+.2f}", "change of earlier tasks since learned"],
        ["forgetting", f"{metrics['forgetting']:.2f}", "drop of earlier tasks from their best"],
        ["forward transfer", f"{metrics['fwt']:+.2f}", "accuracy on tasks before they are learned"],
        ["task-incremental ACC", f"{metrics['task_incremental']['acc']:.2f} %", "if the task were told"],
        ["connections", f"{metrics['connections']:,}", "in the whole network"],
        ["kept between tasks", bytes_text(metrics["bytes_kept"]), f"of which {metrics['images_kept']:,} old samples"],
        ["time", f"{metrics['seconds']:.1f} s", "training and evaluation"],
    ]
    drawn = table(f"{metrics['method']} on {metrics['stream']}, seed {metrics['seed']}", ["", "", ""], rows)
    drawn.show_header = False
    drawn.columns[2].justify, drawn.columns[2].style, drawn.columns[2].no_wrap = "left", "dim", False
    return drawn


def seeds_table(runs: Sequence[Metrics]) -> Table:
    """Each seed's figures, then mean ± standard deviation."""
    rows = [
        [str(m["seed"]), *(f"{value:.2f}" for value in seed_figures(m)), f"{m['seconds']:.1f}"]
        for m in sorted(runs, key=lambda m: int(m["seed"]))
    ]
    summary = seeds_summary(runs)
    rows.append(["mean ± sd", *(f"{f['mean']:.2f} ± {f['sd']:.2f}" for f in summary.values())])
    title = f"{runs[0]['method']} on {runs[0]['stream']}, {len(runs)} seeds ({runs[0]['evaluated_on']})"
    return table(title, ["seed", "ACC", "BWT", "ACC, task told", "seconds"], rows)


def datasets_table(listings: Sequence[Listing]) -> Table:
    rows = [
        [line.name, str(line.classes), f"{line.train:,}", f"{line.test:,}", "×".join(map(str, line.shape)), line.status]
        for line in listings
    ]
    drawn = table("Data sets", ["name", "classes", "train", "test", "shape", "where"], rows)
    drawn.columns[5].justify = "left"
    drawn.columns[5].overflow, drawn.columns[5].no_wrap = "fold", False
    return drawn


def _classes(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 3 else f"{labels[0]} … {labels[-1]}"


def bytes_text(number: float) -> str:
    """A size for people."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"
