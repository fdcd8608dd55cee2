"""What encoders take: images, texts, sounds, or arrays as they are; how samples are checked and prepared for them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from spacenet.utils.extras import require_extra

Array = np.ndarray[Any, Any]
Interpolation = Literal["bilinear", "bicubic"]
CROP = 0.875
"""The middle part of larger images that an encoder looks at, as is common for ImageNet."""
FULL_SCALE = 32768
"""The magnitude of a sound's loudest value in 16 bits."""


@dataclass(frozen=True)
class Input:
    """What an encoder takes. Samples whose size varies are rows of an array of objects."""

    needs: ClassVar[str]
    """What messages call it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a prepared sample; empty where it varies."""
        return ()

    def find_problem(self, x: Array) -> str:
        """Why these samples cannot be encoded; empty if they can."""
        raise NotImplementedError

    def prepare(self, x: Array) -> Array:
        """Samples as the network takes them, but for normalization."""
        return x

    def normalize(self, batch: Tensor) -> Tensor:
        """Prepared samples as the network takes them."""
        return batch.float()

    def mask(self, features: Tensor, batch: Tensor) -> Tensor:
        """What the network gave for prepared samples, with zeros in place of features that say nothing of them."""
        return features

    @property
    def identity(self) -> str:
        """What decides how samples are prepared and features masked."""
        return str(self)


@dataclass(frozen=True)
class ArrayInput(Input):
    """Arrays of numbers, all of one shape, as they are."""

    needs = "arrays of numbers, (n, …)"

    def find_problem(self, x: Array) -> str:
        return "" if x.dtype.kind in "biuf" and x.ndim > 1 else f"these samples are {x.dtype}, {tuple(x.shape)}"


@dataclass(frozen=True)
class ImageInput(Input):
    """The images that an encoder takes: RGB squares, (pixels / 255 − mean) / std."""

    needs = "images as bytes (0 to 255), (n, h, w) or (n, channels, h, w)"

    size: int = 224
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bicubic"
    crop: float = CROP
    """Of images that are larger than `size`, the middle part that is kept; smaller ones are kept whole."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def find_problem(self, x: Array) -> str:
        fits = x.dtype == np.uint8 and (x.ndim == 3 or (x.ndim == 4 and x.shape[1] in (1, 3)))
        return "" if fits else f"these samples are {x.dtype} of the shape {tuple(x.shape[1:])}"

    def prepare(self, x: Array) -> Array:
        return np.stack([self.prepare_array(image) for image in x]) if len(x) else np.empty((0, *self.shape), np.uint8)

    def prepare_image(self, image: Any) -> Array:
        """A Pillow image, already RGB, as bytes (3, size, size): its middle square, resized."""
        width, height = image.size
        side = float(min(width, height))
        if side > self.size:
            side = max(self.size, self.crop * side)
        left, top = (width - side) / 2, (height - side) / 2
        method = getattr(_pillow().Resampling, self.interpolation.upper())
        made = image.resize((self.size, self.size), method, box=(left, top, left + side, top + side))
        return np.ascontiguousarray(np.asarray(made).transpose(2, 0, 1))

    def prepare_array(self, image: Array) -> Array:
        """One image as bytes, (h, w), (1, h, w) or (3, h, w), likewise."""
        if image.ndim == 3:
            image = image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0)
        return self.prepare_image(_pillow().fromarray(np.ascontiguousarray(image)).convert("RGB"))

    def normalize(self, pixels: Tensor) -> Tensor:
        """Bytes as the network takes them."""
        mean, std = (torch.tensor(each, device=pixels.device).view(3, 1, 1) for each in (self.mean, self.std))
        return (pixels.float() / 255 - mean) / std

    def mask(self, features: Tensor, batch: Tensor) -> Tensor:
        """Zeros for images of one color: they show nothing, and what a network gives for them is arbitrary."""
        return torch.where(vary(batch)[:, None], features, 0.0)

    @property
    def identity(self) -> str:
        return f"{self}, zeros for images of one color"


@dataclass(frozen=True)
class TextInput(Input):
    """Texts, which a function turns into the numbers of their tokens."""

    needs = "texts: a list or an array of str, one for each sample"

    tokens: int
    """Tokens of a text that are read, at most."""
    tokenize: Callable[[str], list[int]] = field(repr=False, compare=False)

    def find_problem(self, x: Array) -> str:
        if x.dtype.kind not in "OU" or x.ndim != 1:
            return f"these samples are {x.dtype}, {tuple(x.shape)}"
        for row, text in enumerate(x):
            if not isinstance(text, str):
                return f"row {row} is {_describe(text)}"
            if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
                return f"row {row} has characters that are not text (half of a surrogate pair)"
        return ""

    def prepare(self, x: Array) -> Array:
        return _as_objects([np.array(self.tokenize(text), np.int64) for text in x])

    def normalize(self, batch: Tensor) -> Tensor:
        return batch


@dataclass(frozen=True)
class SoundInput(Input):
    """Sounds of one channel, each as long as it is; the network takes the values of 16 bits."""

    needs = "sounds of one channel at 16,000 Hz, int16 or floats from −1 to 1: (n, values), or a list of arrays"

    shortest: int = 0
    """Values of a sound, at least; shorter ones are filled up with silence."""

    def find_problem(self, x: Array) -> str:
        if x.dtype.kind != "O" and x.ndim != 2:
            return f"these samples are {x.dtype}, {tuple(x.shape)}"
        for row, sound in enumerate(x):
            if not isinstance(sound, np.ndarray) or sound.ndim != 1:
                return f"row {row} is {_describe(sound)}"
            if sound.dtype.kind != "f" and sound.dtype != np.int16:
                return f"row {row} holds {sound.dtype} values"
            if sound.dtype.kind == "f" and not (np.abs(sound) <= 1).all():  # nor NaN
                return f"row {row} has values outside of this range"
        return ""

    def prepare(self, x: Array) -> Array:
        return _as_objects([self._fill_up(sound) for sound in x])

    def _fill_up(self, sound: Array) -> Array:
        scale = FULL_SCALE if sound.dtype.kind == "f" else 1
        return np.pad(sound.astype(np.float32) * scale, (0, max(0, self.shortest - len(sound))))


def vary(pixels: Tensor) -> Tensor:
    """Which images have pixels of different colors, (n,), given (n, channels, h, w)."""
    values = pixels.float()  # not all runtimes compare bytes
    return (values.amax((2, 3)) > values.amin((2, 3))).any(1)


def gather(samples: Any) -> Array | None:
    """Texts or sounds as an array of objects; None for arrays of numbers, and for whatever else is none of these."""
    if isinstance(samples, np.ndarray | list | tuple) or hasattr(samples, "to_list"):  # a column of a data frame
        kind = getattr(samples, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind not in "OU":
            return None
        rows = list(samples)
        if any(isinstance(row, str) for row in rows):
            return _as_objects(rows)
        sounds = [row for row in rows if isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind != "O"]
        if rows and len(sounds) == len(rows) and len({len(sound) for sound in sounds}) > 1:
            return _as_objects(rows)
    return None


def _as_objects(rows: list[Any]) -> Array:
    made = np.empty(len(rows), object)
    for number, row in enumerate(rows):  # all at once, numpy would join rows of equal length
        made[number] = row
    return made


def _describe(sample: object) -> str:
    if isinstance(sample, np.ndarray):
        return f"an array of the shape {sample.shape}"
    if sample is None or sample != sample:
        return "missing"
    return f"{str(sample)[:40]!r}, a {type(sample).__name__}"


def _pillow() -> Any:
    return require_extra("images", "images", "PIL.Image")
