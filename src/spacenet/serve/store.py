"""The model that is served, and its exchange for one that has learned more."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.arrays import MAX_SAMPLES
from spacenet.data.features import encode_samples
from spacenet.data.inputs import Chunk
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import short_name
from spacenet.errors import ModelFileError, SpacenetError
from spacenet.model.file import load_model
from spacenet.model.model import Model
from spacenet.model.predictions import predict_chunk
from spacenet.serve.messages import RequestError
from spacenet.serve.reading import IMAGES
from spacenet.utils.files import atomic_write
from spacenet.utils.lock import lock

MAX_PREDICTIONS = 100_000  # predictions in one response
MAX_IMAGES = 256
"""Images in one request; an image of a few bytes takes as long to encode as any other."""
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
        model = load_model(path)
        model.predict_proba(np.zeros((1, *model.input_shape), np.float32))  # packs it, so that no request has to
        encoder, facts = find_encoder(model)
        description: dict[str, Any] = {"method": model.config.method, "input_shape": model.input_shape}
        description |= {"classes": model.classes, "tasks": model.tasks, "space_left": model.space_left()}
        return cls(model, encoder, {**description, "encoder": facts, "takes": _kinds(model, encoder)})

    @property
    def target(self) -> Target:
        """What requests are read as."""
        return Target(self.model.input_shape, self.model.fitted_normalization.scale, encoder=self.encoder)

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
