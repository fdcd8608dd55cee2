"""A look at runs that go on in other processes."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from spacenet.experiments.callbacks import log
from spacenet.experiments.clusters import WorkersDied
from spacenet.experiments.jobs import Job, Outcome
from spacenet.experiments.run import LOG

if TYPE_CHECKING:
    from rich.text import Text

TIME_OF_DAY = len("2000-12-31 23:59:59")


class JobsView:
    """Where several runs stand, read from the last lines of their logs; for `rich.live.Live`."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs, self.done = jobs, 0

    def __rich__(self) -> "Text":
        from rich.text import Text

        lines = [f"{self.done} of {len(self.jobs)} runs done"]
        for job in self.jobs:
            lines += [f"  {job.label}{line[TIME_OF_DAY:]}" for line in _last_line(job) if "done: " not in line]
        return Text("\n".join(lines), overflow="ellipsis", no_wrap=True)


def _last_line(job: Job) -> list[str]:
    if job.folder is None:
        return []
    try:
        return (job.folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
    except OSError:  # not there yet, or on a file system that does not answer: the view must not end the runs
        return []


def follow_jobs(outcomes: Iterable[Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
    """The outcomes as they come, with a live view in a terminal or a notebook and a line for each that ends."""
    from rich.console import Console
    from rich.live import Live

    console, view = Console(stderr=True), JobsView(jobs)
    shown = console.is_terminal or console.is_jupyter
    with Live(view, console=console, transient=True) if shown else nullcontext():
        for outcome in outcomes:
            view.done += 1
            line = f"{outcome.job.label} {_ended(outcome)}"
            console.print(line, highlight=False) if shown else log.info(line)
            yield outcome


def _ended(outcome: Outcome) -> str:
    if outcome.error is not None or outcome.data is None:
        return f"{'is not finished' if isinstance(outcome.error, WorkersDied) else 'failed'}: {outcome.error}"
    metrics = outcome.data.metrics
    return f"finished: ACC {metrics['acc']:.2f}, BWT {metrics['bwt']:z.2f}, {metrics['seconds']:.1f} s"
