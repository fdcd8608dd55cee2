"""The model size of the paper's methods, for docs/methods.md: its figure, from the figures that runs have left."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pictures import show_plot
from spacenet.experiments.comparison import ComparisonData, Row
from spacenet.report.plots.methods import FLOAT_BYTES, size_plot
from spacenet.report.tables import Table

METHODS = ("ewc", "si", "mas", "dgr", "icarl", "den", "spacenet-rehearsal", "static-sparse", "spacenet")
"""Those of the paper's table of Split MNIST."""
OWN = "spacenet"
TEXT = """\
The paper's figure of model sizes says that SpaceNet has at least ten times fewer parameters than any other method it
compares. Its values are not printed; its text has two of them: 28 times fewer connections than DGR, and a DEN that
adds about 35 neurons to each hidden layer. Below, "numbers" are the parameters and the extra memory kept from task to
task, at 4 bytes a number: DGR's generator, iCaRL's stored samples, the importances of EWC, SI and MAS. A sparse
network also stores where its connections are, which neither the paper nor these figures count.
"""


def size_section(stream: str, rows: Sequence[Row], paper: Mapping[str, Any]) -> str:
    """A picture and a table, the paper's figures included; empty without a row of spacenet."""
    chosen = [row for row in rows if row.method in METHODS]
    own = next((row for row in chosen if row.method == OWN), None)
    if own is None:
        return ""
    plot = size_plot(ComparisonData(stream, "test set", {}, chosen))
    shown = show_plot(dataclasses.replace(plot, name="model-size"))
    lines = [_line(row, own, paper.get(row.method, {})) for row in chosen]
    columns = ["method", "parameters", "extra memory, numbers", "numbers", "times spacenet's", "in the paper"]
    columns += ["units added per hidden layer", "in the paper"]
    table = Table("", columns, lines, "lrrrrrrr").to_markdown()
    return f"{TEXT}\n{shown}\n{table}"


def numbers(row: Row) -> int:
    """Parameters, and extra memory at 4 bytes a number."""
    return row.parameters + row.extra_bytes // FLOAT_BYTES


def _line(row: Row, own: Row, paper: Mapping[str, Any]) -> list[str]:
    extra, times = row.extra_bytes // FLOAT_BYTES, numbers(row) / numbers(own)
    theirs = [f"{paper[key]:g}" if key in paper else "" for key in ("times_spacenet", "units_added")]
    added = f"{row.units_added / 2:g}"  # the MLP has two hidden layers
    return [
        row.method,
        f"{row.parameters:,}",
        f"{extra:,}",
        f"{numbers(row):,}",
        f"{times:.1f}",
        theirs[0],
        added,
        theirs[1],
    ]
