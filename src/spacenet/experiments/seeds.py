"""The same run with several seeds, in one folder."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spacenet.config.run import RunConfig
from spacenet.errors import RunError
from spacenet.experiments.run import CONFIG, create_folder
from spacenet.utils.files import save_text

SUMMARY = "summary.json"


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


def save_summary(folder: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Write mean and standard deviation over the seeds beside the runs."""
    first = runs[0]
    facts = {key: first[key] for key in ("stream", "method", "evaluated_on", "versions")}
    facts |= {"seeds": sorted(run["seed"] for run in runs)} | seeds_summary(runs)
    save_text(folder / SUMMARY, json.dumps(facts, indent=1) + "\n")


def seeds_summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of the figures over the seeds."""
    names = ("acc", "bwt", "task_incremental_acc", "seconds")
    columns = zip(*([*seed_figures(run), run["seconds"]] for run in runs), strict=True)
    return {
        name: {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else 0.0}
        for name, values in zip(names, columns, strict=True)
    }


def seed_figures(metrics: Mapping[str, Any]) -> list[float]:
    """ACC, BWT, and ACC if the task were told."""
    return [metrics["acc"], metrics["bwt"], metrics["task_incremental"]["acc"]]
