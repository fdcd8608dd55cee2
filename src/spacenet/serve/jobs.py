"""Learning while serving: starts the worker process, follows it, and takes over its model when it is done.

All that it writes lies in one private folder beside the model's file, where a finished file can be moved from in one
step. Whatever happens to the process, the model in memory and on disk stay the last good ones.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import SettingsError, SpacenetError
from spacenet.serve.folders import PrivateFolder, remove_leftovers
from spacenet.serve.messages import Job, RequestError
from spacenet.serve.store import Signature, Store

Process = subprocess.Popen[str]


class TrainingJob:
    """At most one task at a time is being learned."""

    def __init__(self, store: Store) -> None:
        self.store, self.job = store, Job()
        self.process: Process | None = None
        self._lock, self._began, self._closed = threading.Lock(), 0.0, False
        self._watcher: threading.Thread | None = None
        folder, self._prefix = store.path.parent, f".{store.path.name}.learning-"
        if not os.access(folder, os.W_OK):
            reason = f"{folder} cannot be written to, and new models are written there"
            raise SettingsError(reason, setting="allow_learn")
        remove_leftovers(folder, self._prefix)

    def check_free(self) -> None:
        if self.job.state == "running":
            task = f"task number {self.job.number}"
            raise RequestError(f"{task} is being learned; see GET /learn, and try again later", 409)

    def start(self, x: Array, y: Array) -> Job:
        with self._lock:  # until the process runs, so that `close` finds it
            self.check_free()
            if self._closed:
                raise RequestError("the service is being stopped", 503)
            model = self.store.current.model
            epochs = model.config.training.epochs_of(len(model.tasks), len(x))
            job = Job(number=self.job.number + 1, state="running", samples=len(x), epochs=epochs)
            self.job, self._began = job, time.monotonic()
            self._start(x, y)
        return job

    def _start(self, x: Array, y: Array) -> None:
        folder = None
        try:
            folder = PrivateFolder(self.store.path.parent, self._prefix)
            np.savez(folder.path / "data.npz", x=x, y=y)
            signature = self.store.signature()
            self.process = self.start_process(folder.path)
        except OSError as error:
            self._end(folder, f"the worker process could not be started ({error.strerror or error})")
            raise RequestError(self.job.error or "", 503) from error
        self._watcher = threading.Thread(target=self._watch, args=(self.process, folder, signature), daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """End the learning process, if there is one, and remove what it was given; the model stays as it is."""
        with self._lock:
            self._closed = True
        if self._watcher is not None:
            assert self.process is not None
            self.process.kill()
            self._watcher.join()

    def start_process(self, folder: Path) -> Process:
        files = map(str, (self.store.path, folder / "data.npz", folder / "new.safetensors"))
        # -P: what lies in the current folder must not be taken for a library. A session of its own: Ctrl-C is for us.
        command = [sys.executable, "-P", "-m", "spacenet.serve.worker", *files]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
        return subprocess.Popen(command, **pipes, env=env, text=True, encoding="utf-8", start_new_session=True)

    def _watch(self, process: Process, folder: PrivateFolder, begun_from: Signature) -> None:
        try:
            if (problem := self._follow(process)) is None:
                self.store.adopt(folder.path / "new.safetensors", begun_from)
        except (SpacenetError, OSError) as error:
            problem = str(error)
        except Exception as error:  # whatever it was, the state must not stay "running"
            problem = f"unexpected: {type(error).__name__}: {error}"
        self._end(folder, problem)

    def _follow(self, process: Process) -> str | None:
        """Note what the process says until it ends; the reason if it failed."""
        problem: str | None = None
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                said = _facts(line)
                problem = said.pop("error", problem)
                if said:
                    self.job = self.job.model_copy(update={**said, "seconds": self._seconds()})
        if process.returncode == 0:
            return None
        if self._closed:
            return "the service was stopped"
        how = f"was killed (signal {-process.returncode})" if process.returncode < 0 else "ended unexpectedly"
        return problem or f"the worker process {how}; the memory may have been too small"

    def _end(self, folder: PrivateFolder | None, problem: str | None) -> None:
        if folder is not None:
            folder.remove()
        facts = {"state": "failed" if problem else "done", "error": problem, "seconds": self._seconds()}
        self.job = self.job.model_copy(update=facts)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


def _facts(line: str) -> dict[str, Any]:
    """What a line of the worker reports; other lines (of libraries) are ignored."""
    try:
        facts = json.loads(line)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
