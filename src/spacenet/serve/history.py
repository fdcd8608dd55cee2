"""What became of the jobs of a model: MODEL.jobs.json beside it, with the last jobs and those that wait or run.

Services that change the same model share the file. It says nothing about a class that was removed from the model.
"""

import json
import logging
import stat
import threading
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from spacenet.errors import SpacenetError
from spacenet.model.labels import Label, same
from spacenet.serve.messages import Job
from spacenet.serve.store import Signature, signature_of
from spacenet.utils.files import atomic_write
from spacenet.utils.lock import lock

SUFFIX = ".jobs.json"
KEPT = 100
"""Jobs that are over and are kept."""
MAX_BYTES = 16 * 1024**2
"""Of a file that is read; one with the largest jobs has less."""
log = logging.getLogger("spacenet")


class _File(BaseModel):
    jobs: list[Job]


class History:
    """The jobs of a model; without `model_file`, only those of this process, in memory."""

    def __init__(self, model_file: Path | None) -> None:
        self._model_file = model_file
        self._path = model_file and model_file.with_name(model_file.name + SUFFIX)
        self._lock = threading.RLock()
        self._own: dict[int, Job] = {}  # those that this process has changed
        self._seen: Signature | None = None  # of the file that was read last
        self.jobs = self._read()

    def look(self) -> dict[int, Job]:
        """The jobs; those of other services that were not over are read again if the file has changed."""
        others = any(not job.is_over and number not in self._own for number, job in self.jobs.copy().items())
        if others and self._seen != self._signature() and self._lock.acquire(blocking=False):
            try:
                self._merge(self._read())
            finally:
                self._lock.release()
        return self.jobs

    def add(self, job: Job) -> Job:
        """Give a new job its number, and note it. Raises `FileError` if it cannot be written."""
        with self._lock:
            if self._path is None:
                return self._add(job)
            with lock(self._path):
                self._merge(self._read())
                added = self._add(job)
                try:
                    self._write(self._path)
                except SpacenetError:
                    self._drop(added.number)
                    raise
        return added

    def note(self, job: Job) -> None:
        """Note the state of a job in this process; the next `save` writes it."""
        with self._lock:
            self._own[job.number] = self.jobs[job.number] = job

    def save(self, job: Job, forgotten: Iterable[Label] = ()) -> None:
        """Note the state of a job, drop labels that were forgotten from all jobs, and write them.

        If that fails there is a warning: the job itself is what matters.
        """
        with self._lock:
            self.note(job)
            if self._path is None:
                return self._merge({}, forgotten)
            try:
                with lock(self._path):
                    self._merge(self._read(), forgotten)
                    self._write(self._path)
            except SpacenetError as error:
                log.warning("spacenet: warning: the history of jobs is not up to date: %s", error.message)

    def _add(self, job: Job) -> Job:
        added = job.model_copy(update={"number": max(self.jobs, default=0) + 1})
        self.note(added)
        self._trim()
        return added

    def _merge(self, found: dict[int, Job], forgotten: Iterable[Label] = ()) -> None:
        self.jobs = {**self.jobs, **found, **self._own}
        for label in forgotten:
            self.jobs = {number: _without(job, label) for number, job in self.jobs.items()}
        self._own = {number: self.jobs[number] for number in self._own}
        self._trim()

    def _trim(self) -> None:
        over = sorted(number for number, job in self.jobs.items() if job.is_over)
        for number in over[:-KEPT]:
            self._drop(number)

    def _drop(self, number: int) -> None:
        self.jobs.pop(number, None)
        self._own.pop(number, None)

    def _read(self) -> dict[int, Job]:
        """The jobs in the file; a file that cannot be used is as good as none."""
        self._seen = self._signature()
        if self._path is None or self._seen is None:
            return {}
        try:
            with self._path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise ValueError("it is too large")
            return {job.number: job for job in _File.model_validate_json(content, strict=True).jobs}
        except (OSError, ValueError, RecursionError) as error:
            reason = "it does not hold jobs" if isinstance(error, ValidationError) else error
            log.warning("spacenet: warning: %s is ignored: %s", self._path, reason)
            return {}

    def _signature(self) -> Signature | None:
        return None if self._path is None else signature_of(self._path)

    def _write(self, path: Path) -> None:
        jobs = [self.jobs[number].model_dump() for number in sorted(self.jobs)]
        with atomic_write(path, self._mode()) as beside:
            beside.write_text(json.dumps({"jobs": jobs}, indent=1), encoding="utf-8")

    def _mode(self) -> int:
        """Readable by no more people than the model."""
        if self._model_file is None or not self._model_file.exists():
            return 0o600
        return stat.S_IMODE(self._model_file.stat().st_mode)


def _without(job: Job, label: Label) -> Job:
    """A job that does not say this label."""
    classes = [each for each in job.classes if not same(each, label)]
    into = None if job.into is not None and same(job.into, label) else job.into
    named = isinstance(label, str) and label in (job.error or "")
    error = "its message named a class that is removed now" if named else job.error
    return job.model_copy(update={"classes": classes, "into": into, "error": error})
