"""A comparison as a table in the layout of the paper's tables 2 and 3: for the terminal, as Markdown, CSV and JSON."""

import csv
import dataclasses
import io
import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from spacenet.experiments.comparison import REFERENCE, Row
from spacenet.report.tables import bytes_text, markdown, mean_std_text, table

COLUMNS = (
    "strategy",
    "method",
    "ACC %",
    "BWT %",
    "told",
    "parameters",
    "extra",
    "images",
    "units +",
    "time",
)
LEGEND = (
    "told: ACC if the task were told. Extra: memory kept from task to task besides the network; images: old samples in "
    "it. Units +: how far the network has grown. Time: of a run"
)
NOTE_ON_REGULARIZATION = (
    "Regularization methods that remember only the last task are no mistake here: without old data nothing teaches the "
    "shared output layer to compare new classes with old ones. Told the task, they do remember."
)


def cells(row: Row) -> list[str]:
    """One row's texts."""
    return [
        row.strategy,
        row.method,
        mean_std_text(row.acc.mean, row.acc.sd if row.seeds > 1 else None),
        mean_std_text(row.bwt.mean, row.bwt.sd if row.seeds > 1 else None),
        f"{row.task_il_acc.mean:.2f}",
        f"{row.parameters:,}",
        bytes_text(row.extra_bytes) if row.extra_bytes else "none",
        f"{row.images:,}",
        f"{row.units_added:,}",
        f"{row.times:.1f} ×" if row.times is not None else f"{row.seconds:.0f} s",
    ]


def comparison_tables(title: str, rows: Sequence[Row], width: int) -> list[Table]:
    """For the terminal: one table, or where it is too narrow two, what was reached and what it took."""
    texts, previous = [], ""
    for line in map(cells, rows):
        texts.append(["" if line[0] == previous else line[0], *line[1:]])
        previous = line[0]
    whole = _table(title, COLUMNS, texts)
    if Console(width=10_000).measure(whole).maximum <= width:
        return [whole]
    costs = _table("What they keep and take", COLUMNS[1:2] + COLUMNS[5:], [line[1:2] + line[5:] for line in texts])
    return [_table(title, COLUMNS[:5], [line[:5] for line in texts]), costs]


def _table(title: str, columns: Sequence[str], texts: Sequence[Sequence[str]]) -> Table:
    drawn = table(title, columns, texts)
    for number, name in enumerate(columns):
        if name == "method":
            drawn.columns[number].justify = "left"
    drawn.columns[0].no_wrap = True
    return drawn


def as_markdown(title: str, rows: Sequence[Row]) -> str:
    parts = [f"# {title}\n", markdown(COLUMNS, [cells(row) for row in rows])]
    return "\n".join([*parts, *(f"{note}\n" for note in notes(rows))])


def as_csv(rows: Sequence[Row]) -> str:
    """Plain numbers, one line per method."""
    out = io.StringIO()
    lines = [_flat(row) for row in rows]
    writer = csv.DictWriter(out, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def as_json(title: str, rows: Sequence[Row], failures: Sequence[str]) -> str:
    facts = {"title": title, "rows": [dataclasses.asdict(row) for row in rows], "failures": list(failures)}
    return json.dumps(facts, indent=1) + "\n"


def notes(rows: Sequence[Row]) -> list[str]:
    """What the columns mean, and what a reader may take for a mistake."""
    forgetful = [row for row in rows if row.strategy == "Regularization" and row.acc.mean < row.task_il_acc.mean / 2]
    relative = any(row.times is not None for row in rows)
    legend = f"{LEGEND}, as a multiple of {REFERENCE}'s." if relative else f"{LEGEND}."
    return [legend, *([NOTE_ON_REGULARIZATION] if forgetful else [])]


def _flat(row: Row) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in dataclasses.asdict(row).items():
        if isinstance(value, dict):
            flat |= {key: value["mean"], f"{key}_sd": value["sd"]}
        else:
            flat[key] = value
    return flat
