"""Measures speed and memory on this machine: `python -m benchmarks.speed`, from the repository's root.

Every ratio is of figures that were measured in one call, on one machine; the options are explained by --help.
"""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from benchmarks.command import load, measured, read_options
from benchmarks.compare import compare_runs, compare_steps, runs_table, runs_verdict, steps_table
from benchmarks.phases import profile, profile_table
from benchmarks.width import measure_widths, widths_table
from benchmarks.workload import Workload, WorkloadOptions, workload
from spacenet.report.tables import Table

Part = Literal["run", "width", "profile"]
PARTS: tuple[Part, ...] = ("run", "width", "profile")


@dataclass(frozen=True)
class Options(WorkloadOptions):
    """Compact against masked dense (run), what width costs (width), where the time goes (profile)."""

    only: tuple[Part, ...] = PARTS
    """Measure only these parts."""
    runs: int = 3
    """Whole runs of each form; the median is shown (in the profile the mean, so that phases add up)."""
    seconds_per_cell: float = 5.0
    """Time given to each cell of the tables of training steps."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print what the options ask for; returns the raw figures."""
    torch.set_num_threads(options.threads)
    with workload(options.threads, options.data_dir, tiny=options.tiny) as work:
        figures: dict[str, Any] = {"machine": _machine(options, work)}
        console.print(Table("Machine", (), [[name, str(fact)] for name, fact in figures["machine"].items()]))
        if "run" in options.only:
            figures["run"] = compare_runs(work, options.runs)
            console.print(runs_table(figures["run"]))
            console.print(runs_verdict(figures["run"]), highlight=False)
            figures["steps"] = compare_steps(work, options.seconds_per_cell)
            console.print("", steps_table(figures["steps"]))
        if "width" in options.only:
            figures["width"] = measure_widths(work, options.seconds_per_cell)
            console.print(widths_table(figures["width"]))
        if "profile" in options.only:
            figures["profile"] = profile(work, options.runs)
            console.print(profile_table(figures["profile"]))
    return figures


def _machine(options: Options, work: Workload) -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads used": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "data": work.data,
        "load at the start": "unknown" if (busy := load()) is None else str(busy),
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.is_file() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def main(arguments: list[str] | None = None) -> int:
    return measured("speed", read_options(Options, "speed", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
