"""Units that no task ever selected, which the paper calls unused: `python -m benchmarks.unused [NAME …]`.

Runs rows of results/rows.toml, all seeds of them, and keeps how many units of each hidden layer are without connections
and how many of these were never selected. docs/adaptive.md shows them beside the paper's figures.
"""

import json
import math
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import tyro

from benchmarks.command import console, read_options, reported
from benchmarks.results import HERE, Figures, hardware, over_seeds, row_named
from spacenet.cli.main import main as spacenet
from spacenet.errors import RunError
from spacenet.experiments.comparison import seed_folders
from spacenet.experiments.run import load_run
from spacenet.model.inspection import inspect_model
from spacenet.report.tables import Table
from spacenet.utils.files import save_text

KEPT = HERE / "unused.json"
PAPER = {"mnist": (92, 91), "fashion": (90, 93)}
"""The paper's unused neurons in the first and second hidden layer, by the start of a row's name."""
ROWS = tuple(
    f"{stream}-{method}"
    for stream in PAPER
    for method in ("spacenet-papers-text", "static-sparse-papers-text", "spacenet")
)


@dataclass(frozen=True)
class Options:
    """Count units that no task selected."""

    rows: tyro.conf.Positional[tuple[str, ...]] = ROWS
    """Rows of results/rows.toml; those that are kept already are counted again only if they are named."""


def expected(units: int, selected: int, reserved: int, tasks: int) -> float:
    """How many units no task selects, on average: each selects at random among those that no earlier one reserved."""
    return units * math.prod(1 - selected / (units - reserved * task) for task in range(tasks))


def measure(name: str) -> Figures:
    """Run a row and count."""
    command = row_named(name)["command"]
    with tempfile.TemporaryDirectory() as scratch:
        code = spacenet(["run", *shlex.split(command), "--out", scratch, "--workers", "1", "--no-report", "--quiet"])
        if code:
            raise RunError(f"{name}: the run ended with exit code {code}")
        seeds = [count(place) for place in seed_folders(Path(scratch))]
    facts = {"command": f"spacenet run {command}", "date": date.today().isoformat(), "hardware": hardware()}
    return {**facts, "seeds": seeds}


def count(folder: Path) -> Figures:
    """Of one run, layer by layer."""
    run = load_run(folder)
    assert run.model is not None
    layers = inspect_model(run.model, 0).layers
    settings = run.config.model.method_settings
    chosen = {key: list(getattr(settings, key)) for key in ("selected", "reserved")}
    return {
        "seed": run.seed,
        "tasks": len(run.model.tasks),
        **chosen,
        "units": [layer.units for layer in layers],
        "without_connections": [layer.unused for layer in layers],
        "never_selected": [layer.never_selected for layer in layers],
    }


def load() -> dict[str, Figures]:
    """What is kept, by the names of rows."""
    return dict(json.loads(KEPT.read_text(encoding="utf-8"))) if KEPT.is_file() else {}


def table(kept: dict[str, Figures]) -> Table:
    """The paper's figures beside ours, first / second hidden layer."""
    lines = []
    for name, facts in kept.items():
        seeds = facts["seeds"]
        measured = [
            " / ".join(over_seeds([seed[key][layer] for seed in seeds]) for layer in range(len(seeds[0]["units"])))
            for key in ("never_selected", "without_connections")
        ]
        paper = next(figures for start, figures in PAPER.items() if name.startswith(start))
        theirs = " / ".join(map(str, paper)) if "static" not in name else ""
        lines.append([f"`{facts['command']}`", *measured, _expected(seeds[0]), theirs, str(len(seeds))])
    columns = ["", "never selected", "without connections", "expected at random", "paper", "seeds"]
    return Table("Unused units, first / second hidden layer", columns, lines, "lrrrrr")


def _expected(seed: Figures) -> str:
    found = []
    for layer, units in enumerate(seed["units"]):
        selected, reserved = (seed[key][min(layer, len(seed[key]) - 1)] for key in ("selected", "reserved"))
        found.append(f"{expected(units, selected, reserved, seed['tasks']):.1f}")
    return " / ".join(found)


def run(options: Options) -> int:
    """Count what is missing or named, keep it, and show it."""
    kept = load()
    for name in options.rows:
        if name not in kept or options.rows != ROWS:
            kept[name] = measure(name)
            save_text(KEPT, json.dumps(kept, indent=1) + "\n")
    console().print(table(kept))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(Options, "unused", None if arguments is None else list(arguments))
    return reported("unused", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
