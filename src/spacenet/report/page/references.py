"""Is a result good? Chance, and the results of naive and joint learning on the same stream where they are known."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from spacenet.errors import SpacenetError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.comparison import SAME_STREAM
from spacenet.experiments.run import CONFIG, RunData, load_config, load_metrics
from spacenet.report.page.cli_command import compare_command, has_name
from spacenet.report.page.page import Section
from spacenet.report.table import Table
from spacenet.utils.text import MeanStd, plural

LOWER, UPPER = "naive", "joint"
MEANINGS = {
    LOWER: "learns one task after the other and protects nothing: what forgetting costs",
    UPPER: "learns all data at once: what is possible without forgetting",
}
MAX_FOLDERS = 500
"""Runs beside a run that are looked at."""
SEED = "seed-"


@dataclass(frozen=True)
class Reference:
    """The result of naive or joint learning."""

    method: str
    accuracies: Sequence[float]
    """ACC of each seed."""


def reference_section(runs: Sequence[RunData], beside: RunData | None = None) -> Section:
    """Chance, this result, and the references that are known; without those, how to get them."""
    acc = [float(run.metrics["acc"]) for run in runs]
    classes, method = sum(map(len, runs[0].labels)), runs[0].method
    known = {each.method: each for each in find_references(runs, beside)}
    rows = [["chance", f"{100 / classes:.1f}", f"guessing one of {plural(classes, 'class', 'es')}"]]
    rows += [_row(known[LOWER])] if LOWER in known else []
    rows.append([method, _mean_text(acc), "this result"])
    rows += [_row(known[UPPER])] if UPPER in known else []
    notes = []
    if len(known) == 2:
        low, high = (MeanStd.of(known[name].accuracies).mean for name in (LOWER, UPPER))
        share = 100 * (MeanStd.of(acc).mean - low) / (high - low) if high > low else 0.0
        if 0 < share <= 100:
            notes.append(f"{method} covers {share:.0f} % of the way from {LOWER} to {UPPER}.")
    missing = [name for name in (LOWER, UPPER) if name not in known and name != method]
    table = Table("ACC beside what is known of the same stream", ["", "ACC %", ""], rows, "lrl")
    order = [name for name in dict.fromkeys((LOWER, method, UPPER)) if name in (*missing, method)]
    command = compare_command(runs[0].config, order) if missing else None
    commands = [(f"No result of {' and '.join(missing)} on this stream was found; this makes them:", command or "")]
    return Section("Is this good?", [table], notes, commands=commands if command else [])


def find_references(runs: Sequence[RunData], beside: RunData | None = None) -> list[Reference]:
    """Results of naive and joint learning on the stream of these runs, from folders beside theirs."""
    first, groups = runs[0], dict[tuple[str, Path | None], list[float]]()
    wanted = {LOWER, UPPER} - {first.method}
    if beside is not None and beside.method in wanted and _same_stream(beside, first):
        groups[beside.method, beside.folder] = [float(beside.metrics["acc"])]
    for folder in dict.fromkeys(islice(_folders_beside(first), MAX_FOLDERS)):
        with suppress(SpacenetError, ValueError, KeyError, TypeError):  # other files than ours
            config, metrics = load_config(folder), load_metrics(folder)
            if metrics is None or metrics["stopped"] or config.model.method not in wanted:
                continue
            if _same_stream(RunData(config, metrics, Analysis()), first):
                place = folder.parent if folder.name.startswith(SEED) else folder
                groups.setdefault((config.model.method, place), []).append(float(metrics["acc"]))
    best: dict[str, Reference] = {}
    for (method, _), accuracies in groups.items():  # the first with the most seeds
        if method not in best or len(accuracies) > len(best[method].accuracies):
            best[method] = Reference(method, accuracies)
    return list(best.values())


def _same_stream(one: RunData, other: RunData) -> bool:
    same = all(getattr(one.config.stream, name) == getattr(other.config.stream, name) for name in SAME_STREAM)
    return same and one.labels == other.labels


def _folders_beside(run: RunData) -> Iterator[Path]:
    """Folders of runs beside this one's: those of the same comparison, then other runs and comparisons.

    Data that was given in Python has no name that tells it apart, so only the same comparison is looked at.
    """
    if run.folder is None:
        return
    own = run.folder.resolve()
    own = own.parent if own.name.startswith(SEED) else own
    names = (LOWER, UPPER)
    comparison = [own.parent / name for name in names] if own.name == run.method else []
    patterns = [CONFIG, f"{SEED}*/{CONFIG}"]
    for place in comparison:
        yield from (path.parent for pattern in patterns for path in sorted(place.glob(pattern)))
    if not has_name(run.config):
        return
    others = [*patterns, *(f"{name}/{pattern}" for name in names for pattern in patterns)]
    for base in (own.parent, own.parent.parent) if comparison else (own.parent,):
        yield from (path.parent for pattern in others for path in sorted(base.glob(f"*/{pattern}")))


def _row(reference: Reference) -> list[str]:
    return [reference.method, _mean_text(reference.accuracies), MEANINGS[reference.method]]


def _mean_text(accuracies: Sequence[float]) -> str:
    figure = MeanStd.of(accuracies)
    return f"{figure.mean:.1f}" + (f" ± {figure.std:.1f}" if len(accuracies) > 1 else "")
