"""How long commands take besides the training itself: `python -m benchmarks.startup`, from the repository's root.

Each is a fresh process. They take turns, and of each the fastest counts; the unit is `python -c "import torch"`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.command import load, measured, read_options
from spacenet.report.tables import Table

TORCH = "import torch"
LIMITS = {"--help": 0.3, "data list": 0.3, "inspect": 1.2, "run": 1.6}
"""Seconds for the first two; for the others a multiple of the time that torch's import takes."""
IN_SECONDS = ("--help", "data list")


@dataclass(frozen=True)
class Options:
    """What is measured how often."""

    repeats: int = 5
    """How often each command is started."""
    stream: str = "split-mnist"
    """The stream of the run."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Start every command several times; returns the raw figures."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = folder / "model.safetensors"
        run_spacenet("run", "split-digits", "--epochs", "1", "--no-report", "--quiet", "--out", str(folder / "model"))
        (folder / "model" / model.name).rename(model)
        seconds: dict[str, list[float]] = {name: [] for name in (TORCH, *LIMITS)}
        for number in range(options.repeats):
            seconds[TORCH].append(timed([sys.executable, "-c", TORCH]))
            seconds["--help"].append(timed(spacenet_command("--help")))
            seconds["data list"].append(timed(spacenet_command("data", "list")))
            seconds["inspect"].append(timed(spacenet_command("inspect", str(model))))
            out = folder / f"run-{number}"
            whole = timed(spacenet_command("run", options.stream, "--no-report", "--out", str(out)))
            metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
            seconds["run"].append(whole - metrics["training_seconds"])
            seconds.setdefault("training", []).append(metrics["training_seconds"])
    unit = min(seconds[TORCH])
    rows = [[TORCH, f"{unit:.2f} s", "1.00", ""]]
    for name, limit in LIMITS.items():
        best = min(seconds[name])
        bound = f"{limit:g} s" if name in IN_SECONDS else f"{limit:g} × torch"
        label = f"spacenet {name}" + (f" {options.stream}, without training" if name == "run" else "")
        rows.append([label, f"{best:.2f} s", f"{best / unit:.2f}", bound])
    console.print(Table("Start-up", ["command", "fastest", "ratio to import torch", "at most"], rows))
    return {"seconds": seconds, "load": load(), "python": sys.version.split()[0]}


def spacenet_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spacenet", *arguments]


def run_spacenet(*arguments: str) -> None:
    subprocess.run(spacenet_command(*arguments), check=True, capture_output=True)


def timed(command: Sequence[str], variables: Mapping[str, str] | None = None) -> float:
    """The seconds of a command, with these environment variables."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - began


def main(arguments: list[str] | None = None) -> int:
    return measured("startup", read_options(Options, "startup", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
