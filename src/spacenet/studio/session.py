"""What the page works on: the model with its jobs, the examples that wait, and those that were set aside."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import SpacenetError
from spacenet.model.capacity import layer_areas
from spacenet.model.export import export_model
from spacenet.model.journal import undo_path
from spacenet.model.labels import Label, read_class, read_new_label
from spacenet.serve.jobs import Jobs
from spacenet.serve.messages import Job, RequestError
from spacenet.serve.models import Hosted, Models
from spacenet.serve.store import NOTHING_LEARNED, Store
from spacenet.studio import messages
from spacenet.studio.drawings import vary_drawings
from spacenet.studio.examples import Examples, check_name
from spacenet.studio.explaining import explain, first_tasks
from spacenet.studio.held_out import HeldOut, choose_held_out
from spacenet.studio.pictures import Picture, find_kind, read_picture
from spacenet.studio.starting import Start, blank_model, find_photo_problem
from spacenet.utils.files import save_bytes

NAME = "model"
RATE = 0.05
"""The typicality below which a picture is unknown, unless the page asks for another."""
FEWEST = 2
"""Examples to learn a new class from, unless they are drawings, of which there are variations."""


class Session:
    """One person teaches one model at a time. New models lie in `folder`, which ends with the studio, unless a file
    for them was named."""

    def __init__(self, folder: Path, model_file: Path | None = None) -> None:
        self.folder, self.model_file = folder, model_file
        self.examples, self.held_out = Examples(), HeldOut()
        self.started = model_file is not None and model_file.exists()
        self._lock, self._made, self._followed = threading.RLock(), 0, 0
        self._learning: dict[int, tuple[list[int], Array, list[Label]]] = {}
        if model_file is not None and self.started:
            store = Store(model_file)
            find_kind(store.current)
        else:
            store = self._new_store("drawings")
        self.models = Models([Hosted(NAME, store, Jobs(store, durable=False))])

    @property
    def store(self) -> Store:
        return self.models.default.store

    @property
    def jobs(self) -> Jobs:
        jobs = self.models.default.jobs
        assert jobs is not None
        return jobs

    def close(self) -> None:
        self.jobs.close()

    # Which model

    def start(self, start: Start) -> None:
        """Begin with a new model."""
        with self._lock:
            self._exchange(self._new_store(start))

    def open(self, content: bytes) -> None:
        """Go on with the model in a file, of which a copy is kept. Raises `RequestError` if it cannot be used."""
        with self._lock:
            path = self._new_path()
            try:
                save_bytes(path, content)
                store = Store(path)
                find_kind(store.current)
            except SpacenetError as error:
                path.unlink(missing_ok=True)
                reason = str(error).replace(f"{path}: ", "").replace(str(path), "the file")
                raise RequestError(f"the model cannot be opened: {reason}") from error
            self._exchange(store)

    def _new_store(self, start: Start) -> Store:
        blank = blank_model(start)
        return Store.create(self._new_path(own=True), blank.config, blank.input_shape)

    def _new_path(self, own: bool = False) -> Path:
        if own and self.model_file is not None and not self.model_file.exists():
            return self.model_file
        self._made += 1
        return self.folder / f"{NAME}-{self._made}.safetensors"

    def _exchange(self, store: Store) -> None:
        self.jobs.close()
        self._remove_files(self.store.path)
        self.models.replace(Hosted(NAME, store, Jobs(store, durable=False)))
        self.examples.clear()
        self.held_out, self.started, self._followed = HeldOut(), True, 0
        self._learning.clear()

    def _remove_files(self, path: Path) -> None:
        """Of a model that is not used any more, unless it is the person's own file."""
        if path.parent == self.folder.resolve():
            for each in (path, undo_path(path)):
                each.unlink(missing_ok=True)

    # Teaching

    def add(self, label: str, content: bytes) -> messages.Added:
        """Add an example of a class."""
        name = check_name(label)
        self.examples.check_room()
        example = self.examples.add(name, read_picture(content, self.store.current))
        count = sum(each.label == name for each in self.examples)
        return messages.Added(number=example.number, label=name, count=count)

    def learn(self) -> Job:
        """Learn the examples, but for those that are set aside. They are deleted when they are learned."""
        with self._lock:
            self._follow()
            if any(not job.is_over for job in self.jobs.list()):
                raise RequestError("the model is being changed; wait until that is done", 409)
            if not (given := list(self.examples)):
                raise RequestError("there are no examples to learn; add some first")
            served = self.store.current
            x, y = np.stack([each.picture.sample for each in given]), [self._label(each.label) for each in given]
            labels = np.array(y)
            held = choose_held_out(labels)
            learned, of = x[~held], labels[~held]
            if find_kind(served) == "drawings":
                learned, of = vary_drawings(learned, of)
            else:
                _check_enough(of, served.model.classes)
            job = self.jobs.submit_learn(learned, of)
            aside = [label for label, out in zip(y, held, strict=True) if out]
            self._learning[job.number] = ([each.number for each in given], x[held], aside)
        threading.Thread(target=self._wait, args=(self.jobs, job.number), daemon=True).start()
        return job

    def _wait(self, jobs: Jobs, number: int) -> None:
        """Delete the examples as soon as they are learned, whether or not the page asks."""
        jobs.wait(number)
        self.follow()

    def _label(self, text: str) -> Label:
        """A label in the type of the model's labels."""
        classes = self.store.current.model.classes
        if text in map(str, classes):
            return read_class(text, classes)
        return read_new_label(text, classes[0]) if classes else text

    def follow(self) -> None:
        """Draw the consequences of jobs that are over."""
        with self._lock:
            self._follow()

    def _follow(self) -> None:
        for job in sorted(self.jobs.list(), key=lambda job: job.number):
            if job.number <= self._followed:
                continue
            if not job.is_over:
                break
            self._followed = job.number
            numbers, x, y = self._learning.pop(job.number, ([], np.empty(0), []))
            if job.state != "done":
                continue
            model = self.store.current.model
            if job.kind == "learn":
                self.examples.remove(numbers)
                self.held_out.learned(x, y, model)
            else:
                self.held_out.edited(job.kind, job.classes, job.into, model)

    # Looking at it

    def state(self) -> messages.State:
        """Everything that the page shows."""
        with self._lock:
            self._follow()
            served, jobs = self.store.current, self.jobs.list()
            model, counts = served.model, self.held_out.counts()
            waiting: dict[str, list[int]] = {}
            for each in self.examples:
                waiting.setdefault(each.label, []).append(each.number)
            return messages.State.model_validate(
                {
                    "kind": find_kind(served),
                    "started": self.started,
                    "file": str(self.store.path) if self.store.path.parent != self.folder.resolve() else None,
                    "classes": [
                        _known_class(label, task, *counts.get(label, (None, None)))
                        for label, task in zip(model.classes, first_tasks(model), strict=True)
                    ],
                    "tasks": len(model.tasks),
                    "space_left": served.description["space_left"],
                    "layers": [vars(each) for each in layer_areas(model)] if model.method.divides_network else [],
                    "examples": [{"label": label, "examples": numbers} for label, numbers in waiting.items()],
                    "can_undo": undo_path(self.store.path).exists(),
                    "tells_unknown": served.tells_unknown or not model.tasks,
                    "photo_problem": find_photo_problem(),
                    "job": vars(jobs[0]) if jobs else None,
                }
            )

    def answer(self, content: bytes, rate: float) -> tuple[Picture, dict[str, Any]]:
        """What the model makes of a picture, and the picture as it sees it."""
        served = self.store.current
        if not served.model.tasks:
            raise RequestError(NOTHING_LEARNED, 409)
        picture = read_picture(content, served)
        return picture, explain(served.model, picture.sample, rate)

    # Taking it along

    def model_file_bytes(self) -> bytes:
        """The model's file."""
        if not self.store.current.model.tasks:
            raise RequestError(NOTHING_LEARNED, 409)
        return self.store.path.read_bytes()

    def onnx_bytes(self, rate: float) -> bytes:
        """The model as an ONNX file, which also says what is unknown if the model can."""
        served = self.store.current
        if not served.model.tasks:
            raise RequestError(NOTHING_LEARNED, 409)
        path = self.folder / f"{NAME}.onnx"
        with self._lock:
            try:
                export_model(served.model, path, "onnx", unknown=rate if served.tells_unknown else None)
                return path.read_bytes()
            except SpacenetError as error:
                raise RequestError(error.message, 409) from error
            finally:
                path.unlink(missing_ok=True)


def _check_enough(labels: Array, known: Sequence[Label]) -> None:
    """Raise `RequestError` for a new class with a single example: nothing could be said of what is typical of it."""
    for label in labels.tolist():
        if label not in known and int((labels == label).sum()) < FEWEST:
            raise RequestError(f"{label} has a single example; add another")


def _known_class(label: Label, task: int, before: Any, after: Any) -> dict[str, Any]:
    counts = {"before": vars(before) if before else None, "after": vars(after) if after else None}
    return {"label": label, "task": task, **counts}
