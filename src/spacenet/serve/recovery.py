"""What becomes of the jobs of a service that has ended, however it ended, when the next one starts.

A job that waited is taken up again, and so is one that was running, because the model file is replaced in one step at
its end: if the file is as it was when the job was begun, nothing of it has been done. If it has changed, either the job
is done (the file is the one that the worker process wrote), or that cannot be told any more and the job is lost.
"""

import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spacenet.errors import FileError
from spacenet.serve.history import History
from spacenet.serve.messages import Job, State
from spacenet.serve.queued import QueuedJob, claim_jobs, numbers_in
from spacenet.serve.store import Store
from spacenet.utils.lock import lock

MAX_AGE = timedelta(days=7)
"""Samples of older jobs are removed and not learned."""
MAX_ATTEMPTS = 3
"""A job during which the service was killed so many times may be the reason for it."""
NO_SAMPLES = "the service ended, and nothing is left of the job"
log = logging.getLogger("spacenet")


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def take_up_jobs(store: Store, history: History, prefix: str) -> list[QueuedJob]:
    """The jobs to go on with, in their order; the history says what became of the others."""
    parent, found = store.path.parent, list[QueuedJob]()
    for queued in claim_jobs(parent, prefix):
        if queued.description.attempts:
            _remove_lock(store.path)
        known = history.jobs.get(queued.number)
        if known is not None and known.is_over:  # its service was killed before it could remove the folder
            history.save(known)  # which also removes the lock that it has left beside the history
            queued.remove()
            continue
        state, reason = _judge(queued, store)
        job = queued.description.job.model_copy(update={"state": state, "error": reason})
        history.save(job, job.classes if state == "done" and job.kind == "forget" else ())
        if state == "queued":
            found.append(queued)
        else:
            _warn(job)
            queued.remove()
    _report_missing(history, numbers_in(parent, prefix))
    return sorted(found, key=lambda each: each.number)


def _remove_lock(path: Path) -> None:
    """Remove the file of a lock that a killed process has left, as every holder of a lock does in the end."""
    with suppress(FileError), lock(path, wait=False):
        pass


def _judge(queued: QueuedJob, store: Store) -> tuple[State, str | None]:
    """The state of a job that another process has left, and the reason if it is lost."""
    description = queued.description
    if _age(description.job) > MAX_AGE:
        return "lost", f"it waited for more than {MAX_AGE.days} days for a service to start"
    if not description.attempts or description.begun_from == store.signature():
        if description.attempts >= MAX_ATTEMPTS:
            return "lost", f"the service was killed {description.attempts} times while it was running"
        return "queued", None
    if description.job.kind == "learn":
        if not queued.new.exists():
            return "queued", None  # another process has changed the file
        if queued.new.read_bytes() == store.path.read_bytes():
            return "done", None
    reason = "the service was killed while it was running, and the model has changed since"
    return "lost", f"{reason}; GET /model says what it knows now"


def _age(job: Job) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(job.submitted or now())
    except (ValueError, TypeError):  # not a time, or one without a time zone
        return timedelta.max


def _report_missing(history: History, present: set[int]) -> None:
    for job in [each for each in history.jobs.values() if not each.is_over and each.number not in present]:
        lost = job.model_copy(update={"state": "lost", "error": NO_SAMPLES})
        _warn(lost)
        history.save(lost)


def _warn(job: Job) -> None:
    if job.state == "lost":
        log.warning("spacenet: warning: job %d (%s) is lost: %s", job.number, job.kind, job.error)
