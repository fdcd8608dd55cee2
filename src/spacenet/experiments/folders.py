"""Folders of several runs: seeds of one run, and comparisons, FOLDER/METHOD/seed-N."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from spacenet.errors import RunError
from spacenet.experiments.comparison import ComparisonData, Failure, check_comparable, compare_runs
from spacenet.experiments.metrics import MeanStd
from spacenet.experiments.run import CONFIG, RunData, load_config, load_metrics, load_run
from spacenet.registry import METHODS
from spacenet.utils.files import save_text

SUMMARY, COMPARISON = "summary.json", "comparison.json"
SUMMARIZED = ("acc", "bwt", "task_il_acc", "seconds")


def seed_folders(folder: Path) -> list[Path]:
    """The runs in a folder of several seeds."""
    return sorted((path.parent for path in folder.glob(f"seed-*/{CONFIG}")), key=lambda path: (len(path.name), path))


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, its seeds, or those of the folders in it."""
    found = _run_or_seeds(folder)
    if not found and folder.is_dir():
        found = [run for child in sorted(folder.iterdir()) for run in _run_or_seeds(child)]
    if not found:
        raise RunError(f"{folder} holds no runs")
    return found


def _run_or_seeds(folder: Path) -> list[Path]:
    return [folder] if (folder / CONFIG).is_file() else seed_folders(folder)


def summarize_seeds(runs: Sequence[RunData]) -> dict[str, MeanStd]:
    """Mean and standard deviation of the main figures over the seeds."""
    return {name: MeanStd.of([run.metrics[name] for run in runs]) for name in SUMMARIZED}


def save_summary(folder: Path, runs: Sequence[RunData]) -> None:
    """Write mean and standard deviation over the seeds beside the runs."""
    first = runs[0].metrics
    facts = {key: first[key] for key in ("stream", "method", "evaluated_on", "versions")}
    facts["seeds"] = sorted(run.seed for run in runs)
    facts |= {name: asdict(figure) for name, figure in summarize_seeds(runs).items()}
    save_text(folder / SUMMARY, json.dumps(facts, indent=1) + "\n")


def save_comparison(folder: Path, data: ComparisonData) -> None:
    """Write the comparison's rows and failures as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    save_text(folder / COMPARISON, comparison_json(data))


def comparison_json(data: ComparisonData) -> str:
    """Rows and failures as JSON."""
    facts = {
        "stream": data.stream,
        "evaluated_on": data.evaluated_on,
        "seeds": data.seeds,
        "rows": [asdict(row) for row in data.rows],
        "failures": [asdict(failure) for failure in data.failures],
    }
    return json.dumps(facts, indent=1) + "\n"


def load_comparison(folders: Path | Sequence[Path]) -> ComparisonData:
    """The comparison in a folder, or one put together from runs, folders of seeds and comparisons."""
    given = [folders] if isinstance(folders, Path) else folders
    runs, failures = [], _noted_failures(given)
    for place in dict.fromkeys(run.resolve() for folder in given for run in runs_in(folder)):
        metrics, model = load_metrics(place), load_config(place).model
        reason = "the run is not finished" if metrics is None else metrics["stopped"]
        if reason is None:
            runs.append(load_run(place))
        else:
            failures.setdefault((model.method, model.seed), Failure(model.method, model.seed, reason))
    if not runs:
        raise RunError(
            f"{', '.join(map(str, given))}: no run has learned its whole stream, there is nothing to compare"
        )
    check_comparable(runs)
    for run in runs:
        failures.pop((run.method, run.seed), None)
    order = [*METHODS, *(run.method for run in runs)]
    return compare_runs(sorted(runs, key=lambda run: order.index(run.method)), failures.values())


def _noted_failures(folders: Sequence[Path]) -> dict[tuple[str, int], Failure]:
    """The failures that comparisons noted, by method and seed."""
    notes = [folder / COMPARISON for folder in folders if (folder / COMPARISON).is_file()]
    found = [Failure(**each) for note in notes for each in json.loads(note.read_text(encoding="utf-8"))["failures"]]
    return {(failure.method, failure.seed): failure for failure in found}
