"""The model that is served, and its exchange for one that has learned more."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.arrays import MAX_SAMPLES
from spacenet.data.inputs import Chunk
from spacenet.data.preprocessing import Array
from spacenet.errors import ModelFileError
from spacenet.model.file import load_model
from spacenet.model.model import Model
from spacenet.model.predictions import predict_chunk
from spacenet.serve.messages import RequestError
from spacenet.utils.files import atomic_write
from spacenet.utils.lock import lock

MAX_PREDICTIONS = 100_000  # predictions in one response
Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Served:
    """A model that does not change any more, ready to predict in several threads."""

    model: Model
    description: dict[str, Any]  # in the form of `messages.Description`

    @classmethod
    def load(cls, path: Path) -> "Served":
        model = load_model(path)
        model.predict_proba(np.zeros((1, *model.input_shape), np.float32))  # packs it, so that no request has to
        description = {"method": model.config.method, "input_shape": model.input_shape, "classes": model.classes}
        return cls(model, {**description, "tasks": model.tasks, "space_left": model.space_left()})

    def predict(self, x: Array, top: int) -> dict[str, Any]:
        """The most probable classes of each input, in the form of `messages.Predictions`."""
        named = min(top, len(self.model.classes))
        if len(x) * named > MAX_PREDICTIONS:
            reason = f"{len(x)} × {named} predictions are more than {MAX_PREDICTIONS:,}; send fewer at a time"
            raise RequestError(reason, 413)
        rows: list[list[dict[str, Any]]] = []
        for first in range(0, len(x), MAX_SAMPLES):
            part = x[first : first + MAX_SAMPLES]
            chunk = Chunk(["inputs"] * len(part), range(first, first + len(part)), part)
            for each in predict_chunk(self.model, chunk, named):
                rows.append([{"label": label, "probability": share} for label, share in each.classes])
        return {"tasks": len(self.model.tasks), "predictions": rows if top > 1 else [row[0] for row in rows]}


class Store:
    """Holds the model that is served now. A request takes `current` once and keeps it until it is done."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()  # a link stays a link: what it leads to is replaced
        self.current = Served.load(self.path)

    def signature(self) -> Signature:
        """Changes whenever the model's file is written."""
        facts = self.path.stat()
        return facts.st_ino, facts.st_mtime_ns, facts.st_size

    def adopt(self, new: Path, begun_from: Signature) -> None:
        """Put a new file in the place of the model's, and serve it: as a whole, or not at all."""
        served = Served.load(new)
        with lock(self.path):
            if self.signature() != begun_from:
                self.current = Served.load(self.path)  # what the other process has learned
                raise ModelFileError(f"{self.path.name} was changed by another process meanwhile; learn the task again")
            with atomic_write(self.path) as beside:
                shutil.copyfile(new, beside)
        self.current = served
