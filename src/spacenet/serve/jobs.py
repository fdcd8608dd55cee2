"""The changes of a model while it is served: a queue of jobs, of which one runs at a time.

Samples are learned in a worker process, whose finished file is taken over in one step; edits need no other process.
Whatever happens to a job, the model in memory and on disk stay the last good ones. A job that was accepted outlives the
service: see `recovery`.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import SettingsError, SpacenetError
from spacenet.model.editing import Edit
from spacenet.model.labels import Label, distinct
from spacenet.serve.history import History
from spacenet.serve.messages import MAX_CLASSES, Job, RequestError, State
from spacenet.serve.queued import Description, QueuedJob, claim_jobs
from spacenet.serve.recovery import now, take_up_jobs
from spacenet.serve.store import NOTHING_LEARNED, Store

MAX_WAITING = 8
"""Jobs that wait, besides the one that runs."""
RETRY_SECONDS = 10
"""After which a client whose job found no room may try again."""
END_SECONDS = 10.0
"""How long the end of a job that is being written is waited for when the service ends."""
USAGE = {
    "rename": "action, label and new",
    "merge": f"action, labels (at most {MAX_CLASSES}) and into",
    "forget": f"action and label, or labels (at most {MAX_CLASSES})",
    "undo": "action alone",
}
Process = subprocess.Popen[str]
Action = Literal["rename", "merge", "forget", "undo"]


class Jobs:
    """The queue of one model. Jobs that are not `durable` end with this process, and no history is written."""

    def __init__(self, store: Store, *, durable: bool = True) -> None:
        self.store, self.durable = store, durable
        self.process: Process | None = None
        self._parent = store.path.parent
        self._prefix = f".{store.path.name}.{'job' if durable else 'temporary-job'}-"
        if not os.access(self._parent, os.W_OK):
            reason = f"{self._parent} cannot be written to, and new models are written there"
            raise SettingsError(reason, setting="allow_learn")
        self._changed = threading.Condition()  # guards what follows
        self._running: QueuedJob | None = None
        self._began, self._entering = 0.0, 0
        self._closed = self._canceled = self._finishing = False
        self._runner: threading.Thread | None = None
        self._history = History(store.path if durable else None)
        self._waiting = deque[QueuedJob]()
        if durable:
            self._waiting.extend(take_up_jobs(store, self._history, self._prefix))
        else:
            for left in claim_jobs(self._parent, self._prefix):
                left.remove()
        if self._waiting:
            with self._changed:
                self._start_runner()

    # What there is

    def list(self) -> Sequence[Job]:
        """Those that wait or run, and the last ones that are over; the newest first."""
        return sorted(self._history.look().copy().values(), key=lambda job: -job.number)

    def get(self, number: int) -> Job:
        """The job with this number. Raises `RequestError` if there is none, or not any more."""
        if job := self._history.look().get(number):
            return job
        raise RequestError(f"there is no job {number}; GET /jobs lists the last ones", 404)

    @property
    def last(self) -> Job:
        """The last job that learns, or one in the state "none"."""
        return next((job for job in self.list() if job.kind == "learn"), Job())

    @property
    def running(self) -> Job | None:
        """The job that is being done now."""
        running = self._running
        job = None if running is None else self._history.jobs.get(running.number)
        return job if job is not None and job.state == "running" else None

    def wait(self, number: int, seconds: float | None = None) -> Job:
        """The job when it is over, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self.get(number).is_over, seconds)
        return self.get(number)

    # What is asked for

    def check_room(self) -> None:
        """Raise `RequestError` if no further job can be accepted now."""
        if self._closed:
            raise RequestError("the service is being stopped", 503, RETRY_SECONDS)
        if len(self._waiting) + self._entering >= MAX_WAITING:
            raise RequestError(f"{MAX_WAITING} jobs are waiting already; try again later", 503, RETRY_SECONDS)

    def submit_learn(self, x: Array, y: Array) -> Job:
        """Learn samples."""
        x, y = self.store.current.check_task(x, y)
        return self._submit(Job(kind="learn", samples=len(y), classes=np.unique(y).tolist()[:MAX_CLASSES]), (x, y))

    def submit_edit(
        self, action: Action, labels: Sequence[Label] = (), into: Label | None = None, keep_undo: bool = False
    ) -> Job:
        """Rename, merge or forget classes, or undo the last change. Raises `RequestError` if that is not complete."""
        check_edit(action, labels, into, keep_undo)
        return self._submit(Job(kind=action, classes=distinct(labels), into=into), keep_undo=keep_undo)

    def submit_undo(self) -> Job:
        """Undo the last change of the model file."""
        return self.submit_edit("undo")

    def cancel(self, number: int) -> Job:
        """Cancel a job that waits or learns. Raises `RequestError` if it is too late for that."""
        with self._changed:
            job = self.get(number)
            if job.is_over:
                raise RequestError(f"job {number} is over already ({job.state})", 409)
            if waiting := next((each for each in self._waiting if each.number == number), None):
                self._waiting.remove(waiting)
                return self._close_job(waiting, "canceled")
            if self._running is None or self._running.number != number:
                raise RequestError(f"job {number} belongs to another service", 409)
            if self._finishing or job.kind != "learn":
                raise RequestError(f"job {number} is being finished and cannot be canceled any more", 409)
            self._canceled = True
            if self.process is not None:
                self.process.kill()
        return self.wait(number, END_SECONDS)

    def close(self) -> None:
        """End the job that runs, and leave it and those that wait to the next service, or remove them."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            if self.process is not None:
                self.process.kill()
            self._changed.notify_all()
        if self._runner is not None:
            self._runner.join(END_SECONDS)
        with self._changed:
            while self._waiting:
                self._leave(self._waiting.popleft(), begun=False)

    # How it is done

    def _submit(self, job: Job, samples: tuple[Array, Array] | None = None, keep_undo: bool = False) -> Job:
        with self._changed:
            self.check_room()
            self._entering += 1
        try:
            job = self._history.add(job.model_copy(update={"state": "queued", "submitted": now()}))
            queued = self._make(job, samples, keep_undo)
        except SpacenetError as error:
            if job.number:
                self._history.save(job.model_copy(update={"state": "failed", "error": error.message}))
            raise RequestError(f"the job cannot be accepted: {error.message}", 503) from error
        finally:
            with self._changed:
                self._entering -= 1
        with self._changed:
            if self._closed:
                self._leave(queued, begun=False)
                return self.get(job.number)
            self._waiting.append(queued)
            if self._running is None and len(self._waiting) == 1:
                self._take_next()
            self._start_runner()
        return self.get(job.number)

    def _make(self, job: Job, samples: tuple[Array, Array] | None, keep_undo: bool) -> QueuedJob:
        description = Description(job=job, keep_undo=keep_undo)
        blank = self.store.blank if job.kind == "learn" else None
        return QueuedJob.make(self._parent, self._prefix, description, samples, blank)

    def _start_runner(self) -> None:
        if self._runner is None:
            self._runner = threading.Thread(target=self._run, name="jobs", daemon=True)
            self._runner.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._running or self._waiting)
                if self._running is None and not self._closed:
                    self._take_next()
                if (current := self._running) is None:
                    return
            self._do(current)

    def _take_next(self) -> None:
        """Make the first job that waits the one that runs."""
        self._running = self._waiting.popleft()
        self._began, self._canceled, self._finishing = time.monotonic(), False, False
        self._update(self._running, state="running")

    def _do(self, current: QueuedJob) -> None:
        problem: str | None
        try:
            self.store.refresh(wait=True)
            current.begin(self.store.signature())
            problem = self._learn(current) if current.description.job.kind == "learn" else self._edit(current)
        except SpacenetError as error:
            problem = error.message
        except OSError as error:
            problem = f"the job could not be done ({error.strerror or error})"
        except Exception as error:  # whatever it was, the state must not stay "running"
            problem = f"unexpected: {type(error).__name__}: {error}"
        with self._changed:
            self.process = None
            if problem and self._canceled:
                self._close_job(current, "canceled")
            elif problem and self._closed:
                self._leave(current, begun=True)
            else:
                self._close_job(current, "failed" if problem else "done", problem)
            self._running = None
            self._changed.notify_all()

    def _edit(self, current: QueuedJob) -> str | None:
        job = current.description.job
        with self._changed:
            if self._closed:
                return "the service was stopped"
            self._finishing = True
        if not self.store.current.model.tasks:
            return NOTHING_LEARNED
        assert job.kind != "learn"
        self.store.edit(Edit(job.kind, tuple(job.classes), job.into, current.description.keep_undo))
        return None

    def _learn(self, current: QueuedJob) -> str | None:
        training, tasks = self.store.current.model.config.training, len(self.store.current.model.tasks)
        epochs = training.epochs_of(tasks, current.description.job.samples)
        self._update(current, epochs=epochs)
        with self._changed:
            if self._closed or self._canceled:
                return "the service was stopped"
            self.process = self.start_process(current)
        problem = self._follow(self.process, current)
        with self._changed:
            if problem or self._canceled:
                return problem or "canceled"
            self._finishing = True
        self.store.adopt(current.new, current.description.begun_from)
        return None

    def start_process(self, current: QueuedJob) -> Process:
        """Start the worker process for a job."""
        files = [self.store.path, current.data, current.new]
        if current.description.begun_from is None and current.blank.exists():  # there is no model file yet
            files.append(current.blank)
        # -P: what lies in the current folder must not be taken for a library. A session of its own: Ctrl-C is for us.
        command = [sys.executable, "-P", "-m", "spacenet.serve.worker", *map(str, files)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
        return subprocess.Popen(command, **pipes, env=env, text=True, encoding="utf-8", start_new_session=True)

    def _follow(self, process: Process, current: QueuedJob) -> str | None:
        """Note what the process says until it ends; the reason if it failed."""
        problem: str | None = None
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                said = _facts(line)
                problem = said.pop("error", problem)
                if said:
                    self._update(current, **said)
        if process.returncode == 0:
            return None
        how = f"was killed (signal {-process.returncode})" if process.returncode < 0 else "ended unexpectedly"
        return problem or f"the worker process {how}; the memory may have been too small"

    def _update(self, current: QueuedJob, **facts: Any) -> Job:
        """Change what is known of the job that runs, in memory."""
        job = self.get(current.number).model_copy(update={**facts, "seconds": self._seconds()})
        self._history.note(job)
        return job

    def _close_job(self, queued: QueuedJob, state: State, problem: str | None = None) -> Job:
        """Note what became of a job, and remove its samples."""
        job = self.get(queued.number)
        facts: dict[str, Any] = {"state": state, "error": problem}
        if queued is self._running:
            facts["seconds"] = self._seconds()
        if state == "done":
            facts["epochs"] = job.epoch  # none, if all classes were known
        forgotten = job.classes if job.kind == "forget" and state == "done" else ()
        job = job.model_copy(update=facts)
        self._history.save(job, forgotten)
        queued.remove()
        self._changed.notify_all()
        return job

    def _leave(self, queued: QueuedJob, begun: bool) -> None:
        """Leave a job to the next service."""
        if not self.durable:
            self._close_job(queued, "canceled")
            return
        self._history.save(self.get(queued.number).model_copy(update={"state": "queued", "epoch": 0, "seconds": 0.0}))
        with suppress(SpacenetError):
            queued.release(begun)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


def check_edit(action: Action, labels: Sequence[Label], into: Label | None, keep_undo: bool) -> None:
    """Raise `RequestError` unless an edit has what it needs, and nothing else."""
    needs = {"rename": (1, 1), "merge": (1, MAX_CLASSES), "forget": (1, MAX_CLASSES), "undo": (0, 0)}
    fewest, most = needs[action]
    if not fewest <= len(labels) <= most or (into is not None) != (action in ("rename", "merge")):
        raise RequestError(f"{action} takes other labels than these; send {USAGE[action]}")
    if keep_undo and action != "forget":
        raise RequestError(f"keep_undo: goes with forget, not with {action}")


def _facts(line: str) -> dict[str, Any]:
    """What a line of the worker reports; other lines (of libraries) are ignored."""
    try:
        facts = json.loads(line)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
