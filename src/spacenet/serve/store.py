"""The model that is served, and its exchange for one that has changed."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.config.model import ModelConfig
from spacenet.data.features import encode_samples
from spacenet.data.images import ImageFormat
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import short_name
from spacenet.encoders.inputs import TextInput
from spacenet.errors import DataError, ModelFileError, SettingsError, SpacenetError
from spacenet.model.editing import Edit, edit_file
from spacenet.model.file import load_model
from spacenet.model.journal import replace_file
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.predictions import Measured, measure
from spacenet.serve.blank import Blank
from spacenet.serve.images import MAX_IMAGES
from spacenet.serve.messages import RequestError
from spacenet.utils.lock import lock

LOOK_SECONDS = 1.0
"""How often, at most, requests let the store look whether the file has changed."""
NOTHING_LEARNED = "nothing has been learned yet; POST /learn teaches the first classes"
log = logging.getLogger("spacenet")
QUICK_SECONDS, QUICK_TRIES = 0.0003, 5
"""A prediction that takes no longer, in the best of so many tries, is quick."""
Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Served:
    """A model that does not change any more, ready to predict in several threads."""

    model: Model
    encoder: Encoder | None
    classes: list[Label]
    tells_unknown: bool
    """Whether it can say how typical samples are."""
    quick: bool
    """Whether predicting a sample takes less time than handing it to a thread and back."""
    description: dict[str, Any]  # in the form of `messages.Description`

    @classmethod
    def load(cls, path: Path) -> "Served":
        return cls.of(load_model(path))

    @classmethod
    def of(cls, model: Model) -> "Served":
        classes, tells_unknown, quick = model.classes, False, False
        if classes:
            one = np.zeros((1, *model.input_shape), np.float32)
            model.predict_proba(one)  # packs it, so that no request has to
            quick = _seconds(lambda: model.predict_proba(one)) < QUICK_SECONDS
            with suppress(SettingsError):  # of a method that cannot
                model.typicality(one)
                tells_unknown = True
        encoder, facts = find_encoder(model)
        description: dict[str, Any] = {"method": model.config.method, "input_shape": model.input_shape}
        description |= {"classes": classes, "tasks": model.tasks, "space_left": model.space_left()}
        description |= {"encoder": facts, "takes": _kinds(model, encoder), "tells_unknown": tells_unknown}
        return cls(model, encoder, classes, tells_unknown, quick, description)

    @property
    def target(self) -> Target:
        """What requests are read as."""
        return Target(self.model.input_shape, _scale(self.model), encoder=self.encoder)

    def check_task(self, x: Array, y: Array) -> tuple[Array, Array]:
        """`Model.check_task`, but images stay images: the process that learns them encodes them."""
        if not self.needs_encoder(x):
            return self.model.check_task(x, y)
        features = np.broadcast_to(np.float32(0), (len(x), *self.model.input_shape))
        return x, self.model.check_task(features, y)[1]

    def needs_encoder(self, x: Array) -> bool:
        """Whether these are samples for the encoder. Raises `DataError` for what it does not take."""
        if self.encoder is None or x.shape[1:] == self.model.input_shape:
            return False
        self.encoder.check(x)
        return True

    def encode(self, x: Array) -> Array:
        """Samples as the model takes them."""
        if not self.needs_encoder(x):
            return x
        if len(x) > MAX_IMAGES:
            raise RequestError(f"{len(x)} samples to encode are more than {MAX_IMAGES}; send fewer at a time", 413)
        assert self.encoder is not None
        return encode_samples(self.encoder, x, keep=False, threads=1)

    def measure(self, x: Array, typicality: bool = False, coverage: float | None = None) -> Measured:
        """What the model says of samples: their probabilities and, where asked for, typicality and sets. At most
        `MAX_SAMPLES` at a time."""
        if not self.classes:
            raise RequestError(NOTHING_LEARNED, 409)
        return measure(self.model, x, typicality, coverage)


def _seconds(work: Callable[[], object]) -> float:
    """How long it takes if nothing interrupts it."""
    times = []
    for _ in range(QUICK_TRIES):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


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


def _scale(model: Model) -> float:
    """The factor that brings raw values to about 0 to 1; the first task of a new model may find another."""
    scale = model.normalization.scale if model.normalization else model.config.preprocessing.scale
    return 1.0 if scale is None else scale


def _kinds(model: Model, encoder: Encoder | None) -> list[str]:
    numbers = "features" if model.config.preprocessing.encoder else "samples"
    found = [f"{numbers} of the shape {model.input_shape}, as JSON or npy"]
    files = "image files (PNG, JPEG, WebP, BMP), as one body, in a form, or as base64 in JSON"
    if encoder is not None and encoder.images is not None:
        found += ["images as bytes of any size, (n, h, w), (n, 3, h, w) or (n, h, w, 3), as npy"]
        found += [f"{files}, of any size"]
    elif encoder is not None and isinstance(encoder.takes, TextInput):
        found += ["texts, as JSON"]
    elif encoder is None and len(model.input_shape) > 1:
        with suppress(DataError):
            shape = ImageFormat.for_model(model.input_shape, _scale(model), False).size
            found += [f"{files}, of {shape[0]} × {shape[1]} pixels, or of any size with ?resize=true"]
    return found


class Store:
    """Holds the model that is served now. A request takes `current` once and keeps it until it is done."""

    def __init__(self, path: Path, blank: Blank | None = None) -> None:
        self.path = path.expanduser().resolve()  # a link stays a link: what it leads to is replaced
        self.blank = blank
        self._exchange, self._looked = threading.Lock(), time.monotonic()
        self._seen = self.signature()  # of the file that was loaded or refused last
        self._current = Served.of(blank.new_model()) if blank else Served.load(self.path)

    @property
    def current(self) -> Served:
        """The model that is served now. Once in `LOOK_SECONDS` at most, a thread looks whether its file has changed."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            threading.Thread(target=self.refresh, name="look", daemon=True).start()
        return self._current

    @classmethod
    def create(cls, path: Path, config: ModelConfig, input_shape: Sequence[int]) -> "Store":
        """A store for a model that has learned nothing yet; its first task makes the file."""
        if path.expanduser().exists():
            raise SettingsError(f"{path} is there already; choose another file, or serve it")
        return cls(path, Blank(config, tuple(input_shape)))

    def signature(self) -> Signature | None:
        """Changes whenever the model's file is written; None if there is no file."""
        return signature_of(self.path)

    def refresh(self, wait: bool = False) -> None:
        """Serve the file anew if another process has changed it. A file that cannot be used is reported once, and the
        model that was served stays. If the file is being loaded already, return unless `wait` is set."""
        if self.signature() in (self._seen, None) or not self._exchange.acquire(blocking=wait):
            return
        try:
            if (found := self.signature()) not in (self._seen, None):
                self._seen = found
                self._current = Served.load(self.path)
                log.info("%s was changed by another process and is served anew", self.path)
        except (SpacenetError, OSError) as error:
            log.warning("spacenet: warning: %s has changed and is not served: %s", self.path, error)
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
        self._current, self._seen = served, self.signature()


def signature_of(path: Path) -> Signature | None:
    """Changes whenever a file is replaced or written; None if there is no file."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
