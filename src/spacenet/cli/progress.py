"""What is seen while runs go on."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.live import Live

from spacenet.experiments.batch import Outcome
from spacenet.experiments.callbacks import Callback, LineLogger, LogsView, ProgressBar, print_line
from spacenet.experiments.run import LOG

PLAIN_PAUSE = 2.0


def callbacks(quiet: bool) -> list[Callback]:
    """For a run in this process: a live bar in a terminal, lines elsewhere."""
    if quiet:
        return []
    console = Console(stderr=True)
    return [ProgressBar(console) if console.is_terminal else LineLogger(print_line, PLAIN_PAUSE)]


def with_progress(outcomes: Iterable[Outcome], labels: Mapping[Path, str]) -> Iterator[Outcome]:
    """The outcomes, and a look at the runs while they go on out of sight in other processes."""
    console = Console(stderr=True)
    view = LogsView({label: folder / LOG for folder, label in labels.items()})
    live = Live(view, console=console, transient=True) if console.is_terminal else nullcontext()
    with live:
        for outcome in outcomes:
            view.done += 1
            console.print(f"{labels[outcome.folder]} {_ended(outcome)}", highlight=False)
            yield outcome


def _ended(outcome: Outcome) -> str:
    metrics = outcome.metrics
    if outcome.error is not None or not metrics or "acc" not in metrics:
        return f"failed: {outcome.error}"
    return f"finished: ACC {metrics['acc']:.2f}, BWT {metrics['bwt']:.2f}, {metrics['seconds']:.1f} s"
