"""Several methods on the same stream, each with several seeds: one row per method.

In a folder they are FOLDER/METHOD/seed-N; the seeds of one run are FOLDER/seed-N.
"""

import json
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spacenet.config.model import nest_settings
from spacenet.config.presets import Layer, preset_config
from spacenet.config.run import METHODS_SECTION, RunConfig
from spacenet.config.stream import CUT, DATA_SETTINGS
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.jobs import Outcome
from spacenet.experiments.run import CONFIG, RunData, load_config, load_metrics, load_run
from spacenet.methods import get_method
from spacenet.registry import METHODS
from spacenet.utils.files import save_text
from spacenet.utils.text import MeanStd

REFERENCE = "naive"
"""The method whose time is 1."""
SUMMARY, COMPARISON = "summary.json", "comparison.json"
SUMMARIZED = ("acc", "last_acc", "aia", "bwt", "forgetting", "task_il_acc", "seconds")
SAME_STREAM = ("name", *DATA_SETTINGS, *CUT, "validation")
"""Settings of the stream that the runs of a comparison share; data_dir says where the data is."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method in the table. Everything in it was measured; None stands for what a table kept by an earlier version
    lacks. `spacenet.experiments.metric_names` says what the metrics mean."""

    strategy: str
    method: str
    seeds: int
    acc: MeanStd
    last_acc: MeanStd | None = None
    aia: MeanStd | None = None
    bwt: MeanStd
    forgetting: MeanStd | None = None
    task_il_acc: MeanStd
    parameters: int
    bytes_kept: int | None = None
    """Kept from task to task, network included."""
    extra_bytes: int
    """Of these, what is kept besides the network."""
    images: int
    units_added: int
    seconds: float
    relative_time: float | None
    """Training time as a multiple of the reference's in the same comparison."""


@dataclass(frozen=True)
class Failure:
    """A run that did not learn the whole stream."""

    method: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.method} seed {self.seed}: {self.reason}"


@dataclass(frozen=True)
class ComparisonData:
    """Several methods on one stream."""

    stream: str
    evaluated_on: str
    runs: Mapping[str, Sequence[RunData]]
    """For each method its finished runs, by seed; in the order of the rows."""
    rows: Sequence[Row]
    failures: Sequence[Failure] = ()

    @property
    def seeds(self) -> list[int]:
        """All seeds that any method ran with."""
        return sorted({run.seed for runs in self.runs.values() for run in runs})

    @property
    def accs(self) -> dict[str, dict[int, float]]:
        """Each method's ACC by seed."""
        return {name: {run.seed: float(run.metrics["acc"]) for run in runs} for name, runs in self.runs.items()}

    @property
    def labels(self) -> list[list[str]]:
        """The classes of each task."""
        return next(iter(self.runs.values()))[0].labels if self.runs else []


def comparison_configs(
    stream: str, over: Mapping[str, Layer], settings: Layer, preset: str | None = None
) -> dict[str, RunConfig]:
    """Each method's configuration: its preset, `settings` for all and under "methods" for it, and what `over` has."""
    if "method" in settings:
        raise SettingsError(f"[method] belongs to one method; write [{METHODS_SECTION}.NAME] for the method NAME")
    common = {key: value for key, value in settings.items() if key != METHODS_SECTION}
    own = settings.get(METHODS_SECTION, {})
    return {
        name: preset_config(stream, name, common, nest_settings(name, own.get(name, {})), given, preset=preset)
        for name, given in over.items()
    }


def compare_outcomes(outcomes: Iterable[Outcome]) -> ComparisonData:
    """The comparison that finished runs make. Those that did not learn the whole stream are listed as failures."""
    runs, failures = [], []
    for outcome in outcomes:
        if outcome.finished and outcome.data is not None:
            runs.append(outcome.data)
        else:
            model, error = outcome.job.config.model, outcome.error
            failures.append(Failure(model.method, model.seed, error.message if error else "not finished"))
    return compare_runs(runs, failures)


def compare_runs(runs: Iterable[RunData], failures: Iterable[Failure] = ()) -> ComparisonData:
    """The comparison of these runs; methods in the order in which they come."""
    found: dict[str, list[RunData]] = {}
    for run in runs:
        insort(found.setdefault(run.method, []), run, key=lambda run: run.seed)
    times = [run.metrics["seconds"] for run in found.get(REFERENCE, ())]
    rows = [_row(name, each, MeanStd.of(times).mean if times else None) for name, each in found.items()]
    first = next(iter(found.values()))[0].metrics if found else {"stream": "", "evaluated_on": "test set"}
    return ComparisonData(first["stream"], first["evaluated_on"], found, rows, tuple(failures))


def check_comparable(runs: Sequence[RunData]) -> None:
    """Raise `RunError` for runs that cannot be put side by side: other streams, or one method with several settings."""
    first: dict[str, RunData] = {}
    seeds: dict[tuple[str, int], RunData] = {}
    for run in runs:
        model = run.config.model
        if any(getattr(run.config.stream, name) != getattr(runs[0].config.stream, name) for name in SAME_STREAM):
            raise RunError(f"{_place(run)} and {_place(runs[0])} are runs on different streams or cuts of one")
        other = first.setdefault(model.method, run)
        if _settings(run) != _settings(other):
            raise RunError(f"{_place(run)} and {_place(other)} are {model.method} with different settings; choose one")
        twin = seeds.setdefault((model.method, model.seed), run)
        if twin is not run:
            raise RunError(f"{_place(run)} and {_place(twin)} are {model.method} with the same seed; choose one")


def _place(run: RunData) -> str:
    return str(run.folder) if run.folder else f"{run.method} seed {run.seed}"


def _settings(run: RunData) -> tuple[Any, ...]:
    model = run.config.model
    return model.net, model.training, model.method_settings


def _row(name: str, runs: Sequence[RunData], reference: float | None) -> Row:
    def over_seeds(key: str) -> MeanStd:
        return MeanStd.of([float(run.metrics[key]) for run in runs])

    seconds = over_seeds("seconds").mean
    return Row(
        strategy=get_method(name).strategy,
        method=name,
        seeds=len(runs),
        acc=over_seeds("acc"),
        last_acc=over_seeds("last_acc"),
        aia=over_seeds("aia"),
        bwt=over_seeds("bwt"),
        forgetting=over_seeds("forgetting"),
        task_il_acc=over_seeds("task_il_acc"),
        parameters=round(over_seeds("parameters").mean),
        bytes_kept=round(over_seeds("bytes_kept").mean),
        extra_bytes=round(over_seeds("extra_bytes").mean),
        images=round(over_seeds("images_kept").mean),
        units_added=round(over_seeds("units_added").mean),
        seconds=seconds,
        relative_time=seconds / reference if reference else None,
    )


# Folders


def seed_folders(folder: Path) -> list[Path]:
    """The runs in a folder of several seeds."""
    return sorted((path.parent for path in folder.glob(f"seed-*/{CONFIG}")), key=lambda path: (len(path.name), path))


def finished_seeds(folder: Path | None) -> list[int]:
    """The seeds that are finished in a folder of several; none without a folder."""
    finished = [place for place in seed_folders(folder) if load_metrics(place)] if folder else []
    return [load_config(place).model.seed for place in finished]


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, its seeds, or those of the folders in it."""
    found = _run_or_seeds(folder) or [run for child in sorted(folder.glob("*")) for run in _run_or_seeds(child)]
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
