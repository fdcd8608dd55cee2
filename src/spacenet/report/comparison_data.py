"""What the report of a comparison is made from: the metrics of its runs, and the table's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacenet.config.run import RunConfig
from spacenet.errors import RunError
from spacenet.experiments.batch import Outcome
from spacenet.experiments.comparison import Row, rows
from spacenet.experiments.run import CONFIG, load_config, load_metrics
from spacenet.experiments.seeds import seed_folders

_SAME_STREAM = ("npz", "classes_per_task", "tasks", "shuffle_classes", "validation")
"""Settings of the data that runs of one comparison share; others say how a method sees them, or where they lie."""


@dataclass(frozen=True)
class ComparisonFacts:
    """Several methods on one stream."""

    stream: str
    evaluated_on: str
    runs: Mapping[str, Sequence[Mapping[str, Any]]]
    """For each method the content of its runs' metrics.json, by seed; in the order of the rows."""
    rows: Sequence[Row]
    left_out: Sequence[str]
    """Runs that did not learn the whole stream, and why."""

    @property
    def seeds(self) -> list[int]:
        """All seeds that any method ran with."""
        return sorted({run["seed"] for runs in self.runs.values() for run in runs})

    @property
    def labels(self) -> list[list[str]]:
        """The classes of each task."""
        return [list(task["labels"]) for task in next(iter(self.runs.values()))[0]["tasks"]]


def load_comparison(folders: Path | Sequence[Path]) -> ComparisonFacts:
    """The comparison in a folder; or one put together by hand from runs, folders of seeds and comparisons."""
    given = [folders] if isinstance(folders, Path) else folders
    places = list(dict.fromkeys(run.resolve() for folder in given for run in runs_in(folder)))
    configs = {place: load_config(place) for place in places}
    _check(configs)
    outcomes = [_outcome(place) for place in places]
    ended = [outcome.metrics for outcome in outcomes if outcome.metrics is not None and outcome.error is None]
    if not ended:
        raise RunError(
            f"{', '.join(map(str, given))}: no run has learned its whole stream, there is nothing to compare"
        )
    table = rows(outcomes)
    runs = {row.method: sorted((m for m in ended if m["method"] == row.method), key=_seed) for row in table}
    names = {place: f"{config.method} seed {config.seed}" for place, config in configs.items()}
    left_out = [f"{names[outcome.folder]}: {outcome.error}" for outcome in outcomes if outcome.error is not None]
    return ComparisonFacts(ended[0]["stream"], ended[0]["evaluated_on"], runs, table, left_out)


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


def _outcome(folder: Path) -> Outcome:
    metrics = load_metrics(folder)
    if metrics is None:
        return Outcome(folder, error="the run is not finished")
    return Outcome(folder, metrics, metrics["stopped"])


def _seed(metrics: Mapping[str, Any]) -> int:
    return int(metrics["seed"])


def _check(configs: Mapping[Path, RunConfig]) -> None:
    """Raise what cannot be put side by side: other streams, and one method with several settings."""
    places = list(configs)
    seen: dict[tuple[str, int], Path] = {}
    first: dict[str, Path] = {}
    for place, config in configs.items():
        if _stream(config) != _stream(configs[places[0]]):
            raise RunError(f"{place} and {places[0]} are not of one stream, cut in the same way: nothing to compare")
        other = first.setdefault(config.method, place)
        if _settings(config) != _settings(configs[other]):
            raise RunError(f"{place} and {other} are {config.method} with different settings; take one of them")
        twin = seen.setdefault((config.method, config.seed), place)
        if twin != place:
            raise RunError(f"{place} and {twin} are {config.method} with the same seed; take one of them")


def _stream(config: RunConfig) -> tuple[Any, ...]:
    return (config.stream, *(getattr(config.data, name) for name in _SAME_STREAM))


def _settings(config: RunConfig) -> tuple[Any, ...]:
    return config.net, config.training, config.options
