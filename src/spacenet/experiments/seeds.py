"""The same experiment with several seeds, in parallel processes. A folder of folders, one for each seed."""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacenet.errors import RunError, SpacenetError
from spacenet.experiments.config import RunConfig
from spacenet.experiments.launch import launch
from spacenet.experiments.run import CONFIG, Run, create_folder, load_config, load_metrics
from spacenet.experiments.watch import LineWatch, Watch, print_line
from spacenet.report.tables import seeds_summary
from spacenet.training.checkpoint import save_text
from spacenet.training.hardware import Hardware, find_hardware

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Outcome:
    """How one run ended: with metrics, or with an error for people."""

    folder: Path
    metrics: dict[str, Any] | None = None
    error: str | None = None
    exit_code: int = 0


def create_folders(config: RunConfig, seeds: Sequence[int], folder: Path) -> list[Path]:
    """Make the folders of new runs, one for each seed."""
    if seed_folders(folder):
        raise RunError(f"{folder} holds runs already; go on with --resume {folder}, or choose another --out")
    folders = [folder / f"seed-{seed}" for seed in seeds]
    for seed, place in zip(seeds, folders, strict=True):
        create_folder(dataclasses.replace(config, seed=seed), place)
    return folders


def seed_folders(folder: Path) -> list[Path]:
    """The runs in a folder of several seeds."""
    return sorted(path.parent for path in folder.glob(f"seed-*/{CONFIG}"))


def usual_workers(folder: Path) -> int:
    """How many runs like the one in the folder go well at the same time. A GPU is kept busy by two."""
    training = load_config(folder).training
    on_gpu = find_hardware(training).device.type == "cuda"
    return 2 if on_gpu else max(1, (os.cpu_count() or 1) // (training.devices * training.threads))


def execute(folder: Path, watches: Sequence[Watch] = ()) -> Outcome:
    """Run, or go on with, what a folder holds. A finished run is not repeated."""
    try:
        metrics = load_metrics(folder)
        if metrics is not None and not metrics["stopped"]:
            return Outcome(folder, metrics)
        training = load_config(folder).training
        if training.devices > 1:
            return launch(training, _in_process, folder, bool(watches))
    except SpacenetError as error:
        return Outcome(folder, load_metrics(folder), str(error), error.exit_code)
    return _attempt(folder, watches)


def _attempt(folder: Path, watches: Sequence[Watch], hardware: Hardware | None = None) -> Outcome:
    try:
        return Outcome(folder, Run(folder, watches, hardware).execute())
    except SpacenetError as error:
        return Outcome(folder, load_metrics(folder), str(error), error.exit_code)


def _in_process(hardware: Hardware, folder: Path, shown: bool) -> Outcome:
    """One of several processes that share a run. A bar cannot be handed over to it, so it prints lines."""
    return _attempt(folder, [LineWatch(print_line)] if shown else [], hardware)


def execute_all(folders: Sequence[Path], workers: int, watch: Callable[[], Sequence[Watch]]) -> Iterator[Outcome]:
    """Run all of them, `workers` at a time, and yield each outcome as it comes. One worker shows its run live."""
    if workers == 1:
        yield from (execute(folder, watch()) for folder in folders)
        return
    import joblib

    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
    yield from parallel(joblib.delayed(execute)(folder) for folder in folders)


def save_summary(folder: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Write mean and standard deviation over the seeds beside the runs."""
    first = runs[0]
    facts = {key: first[key] for key in ("stream", "method", "evaluated_on", "versions")}
    facts |= {"seeds": sorted(run["seed"] for run in runs)} | seeds_summary(runs)
    save_text(folder / SUMMARY, json.dumps(facts, indent=1) + "\n")
