"""The model that is served, and its exchange for one that has changed."""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.config.model import ModelConfig
from spacenet.data.arrays import MAX_SAMPLES
from spacenet.data.features import encode_samples
from spacenet.data.inputs import Chunk
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import short_name
from spacenet.errors import ModelFileError, SettingsError, SpacenetError
from spacenet.model.editing import Edit, edit_file
from spacenet.model.file import load_model
from spacenet.model.journal import replace_file
from spacenet.model.model import Model
from spacenet.model.predictions import predict_chunk
from spacenet.serve.blank import Blank
from spacenet.serve.messages import RequestError
from spacenet.serve.reading import IMAGES
from spacenet.utils.lock import lock

MAX_PREDICTIONS = 100_000  # predictions in one response
MAX_IMAGES = 256
"""Images in one request; an image of a few bytes takes as long to encode as any other."""
LOOK_SECONDS = 1.0
"""How often, at most, requests let the store look whether the file has changed."""
NOTHING_LEARNED = "nothing has been learned yet; POST /learn teaches the first classes"
log = logging.getLogger("spacenet")
Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Served:
    """A model that does not change any more, ready to predict in several threads."""

    model: Model
    encoder: Encoder | None
    description: dict[str, Any]  # in the form of `messages.Description`

    @classmethod
    def load(cls, path: Path) -> "Served":
        return cls.of(load_model(path))

    @classmethod
    def of(cls, model: Model) -> "Served":
        if model.tasks:
            model.predict_proba(np.zeros((1, *model.input_shape), np.float32))  # packs it, so that no request has to
        encoder, facts = find_encoder(model)
        description: dict[str, Any] = {"method": model.config.method, "input_shape": model.input_shape}
        description |= {"classes": model.classes, "tasks": model.tasks, "space_left": model.space_left()}
        return cls(model, encoder, {**description, "encoder": facts, "takes": _kinds(model, encoder)})

    @property
    def target(self) -> Target:
        """What requests are read as."""
        model = self.model
        scale = model.normalization.scale if model.normalization else model.config.preprocessing.scale
        return Target(model.input_shape, 1.0 if scale is None else scale, encoder=self.encoder)

    def check_task(self, x: Array, y: Array) -> tuple[Array, Array]:
        """`Model.check_task`, but images stay images: the process that learns them encodes them."""
        if not self.takes_images(x):
            return self.model.check_task(x, y)
        features = np.broadcast_to(np.float32(0), (len(x), *self.model.input_shape))
        return x, self.model.check_task(features, y)[1]

    def takes_images(self, x: Array) -> bool:
        """Whether these samples are images for the encoder. Raises `DataError` for what it does not take."""
        if self.encoder is None or x.shape[1:] == self.model.input_shape:
            return False
        self.encoder.check(x)
        return True

    def predict(self, x: Array, top: int) -> dict[str, Any]:
        """The most probable classes of each input, in the form of `messages.Predictions`."""
        if not self.model.tasks:
            raise RequestError(NOTHING_LEARNED, 409)
        named = min(top, len(self.model.classes))
        if len(x) * named > MAX_PREDICTIONS:
            reason = f"{len(x)} × {named} predictions are more than {MAX_PREDICTIONS:,}; send fewer at a time"
            raise RequestError(reason, 413)
        if self.takes_images(x):
            if len(x) > MAX_IMAGES:
                raise RequestError(f"{len(x)} images are more than {MAX_IMAGES}; send fewer at a time", 413)
            assert self.encoder is not None
            x = encode_samples(self.encoder, x, keep=False, threads=1)
        rows: list[list[dict[str, Any]]] = []
        for first in range(0, len(x), MAX_SAMPLES):
            part = x[first : first + MAX_SAMPLES]
            chunk = Chunk(["inputs"] * len(part), range(first, first + len(part)), part)
            for each in predict_chunk(self.model, chunk, named):
                rows.append([{"label": label, "probability": share} for label, share in each.classes])
        return {"tasks": len(self.model.tasks), "predictions": rows if top > 1 else [row[0] for row in rows]}


def find_encoder(model: Model) -> tuple[Encoder | None, dict[str, Any] | None]:
    """The model's encoder if it has one that can be used here, and what there is to say about it."""
    known, encoder, problem = model.config.preprocessing, None, None
    if not known.encoder:
        return None, None
    try:
        encoder = model.encoder
    except SpacenetError as error:
        problem = error.message
        log.warning("spacenet: warning: only features are taken: %s", problem)
    facts = {"name": short_name(known.encoder), "version": known.encoder_version, "checksum": known.encoder_checksum}
    return encoder, {**facts, "problem": problem}


def _kinds(model: Model, encoder: Encoder | None) -> list[str]:
    numbers = "features" if model.config.preprocessing.encoder else "samples"
    found = [f"{numbers} of the shape {model.input_shape}, as JSON or npy"]
    if encoder is not None and encoder.images is not None:
        found += ["images as bytes of any size, (n, h, w), (n, 3, h, w) or (n, h, w, 3), as npy"]
        found += [f"one image file of any size, as {', '.join(IMAGES)}"]
    return found


class Store:
    """Holds the model that is served now. A request takes `current` once and keeps it until it is done."""

    def __init__(self, path: Path, blank: Blank | None = None) -> None:
        self.path = path.expanduser().resolve()  # a link stays a link: what it leads to is replaced
        self.blank = blank
        self._exchange, self._looked = threading.Lock(), time.monotonic()
        self._seen = self.signature()  # of the file that was loaded or refused last
        self.current = Served.of(blank.new_model()) if blank else Served.load(self.path)

    @classmethod
    def create(cls, path: Path, config: ModelConfig, input_shape: Sequence[int]) -> "Store":
        """A store for a model that has learned nothing yet; its first task makes the file."""
        if path.expanduser().exists():
            raise SettingsError(f"{path} is there already; choose another file, or serve it")
        return cls(path, Blank(config, tuple(input_shape)))

    def signature(self) -> Signature | None:
        """Changes whenever the model's file is written; None if there is no file."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return None
        return facts.st_ino, facts.st_mtime_ns, facts.st_size

    def refresh(self, at_once: bool = False) -> None:
        """Serve the file again if another process has changed it.

        It is looked at once in `LOOK_SECONDS` at most, unless it has to be at once; one thread loads it, and the others
        go on with the model that they have. A file that cannot be used is reported once, and the model stays.
        """
        now = time.monotonic()
        if not at_once and now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if self.signature() in (self._seen, None) or not self._exchange.acquire(blocking=at_once):
            return
        try:
            if (found := self.signature()) not in (self._seen, None):
                self._seen = found
                self.current = Served.load(self.path)
                log.info("%s was changed by another process and is served anew", self.path)
        except SpacenetError as error:
            log.warning("spacenet: warning: the model that was served stays: %s", error.message)
        finally:
            self._exchange.release()

    def adopt(self, new: Path, begun_from: Signature | None) -> None:
        """Put a new file in the place of the model's, keep the version before, and serve the new one: as a whole, or
        not at all. A file that has changed since `begun_from` stays, and is served."""
        served = Served.load(new)
        with self._exchange, lock(self.path):
            if self.signature() != begun_from:
                self._serve(Served.load(self.path))  # what the other process has learned
                raise ModelFileError(f"{self.path.name} was changed by another process meanwhile; learn the task again")
            replace_file(self.path, new)
            self._serve(served)

    def edit(self, edit: Edit) -> None:
        """Change the file, and serve it: as a whole, or not at all."""
        with self._exchange, lock(self.path):
            self._serve(Served.of(edit_file(self.path, edit)))

    def _serve(self, served: Served) -> None:
        self.current, self._seen = served, self.signature()
