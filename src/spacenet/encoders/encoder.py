"""An encoder: a frozen network, what it takes, and the features it gives."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from spacenet.errors import DataError
from spacenet.utils.extras import require_extra

Array = np.ndarray[Any, Any]
Interpolation = Literal["bilinear", "bicubic"]
GPU_BATCH = 256
"""Images that are encoded at a time on a GPU; fewer are filled up, because features must not depend on their number."""
CROP = 0.875
"""The middle part of larger images that an encoder looks at, as is common for ImageNet."""


@dataclass(frozen=True)
class ImageInput:
    """The images that an encoder takes: RGB squares, (pixels / 255 − mean) / std."""

    size: int = 224
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bicubic"
    crop: float = CROP
    """Of images that are larger than `size`, the middle part that is kept; smaller ones are kept whole."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def prepare(self, image: Any) -> Array:
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
        return self.prepare(_pillow().fromarray(np.ascontiguousarray(image)).convert("RGB"))

    def normalize(self, pixels: Tensor) -> Tensor:
        """Bytes as the network takes them."""
        mean, std = (torch.tensor(each, device=pixels.device).view(3, 1, 1) for each in (self.mean, self.std))
        return (pixels.float() / 255 - mean) / std


@dataclass(frozen=True)
class Encoder:
    """A frozen network with a name, and how samples are prepared for it.

    Attributes
    ----------
    name : str
        What it is known by, e.g. "efficientnet-lite0".
    version : str
        Of the package that it comes from, if it comes from one.
    checksum : str
        The SHA-256 of its weights.
    features : int
        How many numbers it gives for a sample.
    network : callable
        Takes a batch of normalized samples and returns a batch of features.
    images : ImageInput, optional
        How images are prepared; None for an encoder that takes samples as they are.
    """

    name: str
    version: str
    checksum: str
    features: int
    network: Callable[[Tensor], Tensor] = field(repr=False, compare=False)
    images: ImageInput | None = None

    @property
    def identity(self) -> str:
        """What decides the features, besides the samples."""
        return f"{self.name} {self.checksum} {self.images}"

    def prepare(self, x: Array) -> Array:
        """Raw samples as the network takes them, but for normalization: images as bytes of its size."""
        if self.images is None:
            return x
        self.check(x)
        images = (self.images.prepare_array(image) for image in x)
        return np.stack(list(images)) if len(x) else np.empty((0, *self.shape), np.uint8)

    def check(self, x: Array) -> None:
        """Raise `DataError` for samples that cannot be encoded."""
        if self.images is None:
            return
        if x.dtype != np.uint8 or x.ndim not in (3, 4) or (x.ndim == 4 and x.shape[1] not in (1, 3)):
            raise DataError(
                f"the encoder {self.name} takes images as bytes (0 to 255), (n, h, w) or (n, channels, h, w); these "
                f"samples are {x.dtype} of the shape {tuple(x.shape[1:])}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a prepared image; empty for an encoder that takes samples as they are."""
        return self.images.shape if self.images else ()

    def encode(self, prepared: Array, device: torch.device | None = None, threads: int | None = None) -> Array:
        """The features of prepared samples, (n, features), in 32 bits. They do not depend on how many there are.

        On a CPU each sample is encoded alone, on one of several threads (by default as many as there are processors):
        that is as fast as a batch, and the size of a batch, like the number of torch's own threads, would decide how
        sums are rounded. On a GPU batches always have the same size.
        """
        device = device or torch.device("cpu")
        found = np.empty((len(prepared), self.features), np.float32)

        def encode_rows(rows: slice, size: int) -> None:
            batch = torch.from_numpy(np.ascontiguousarray(prepared[rows])).to(device)
            if len(batch) < size:
                batch = torch.cat([batch, batch.new_zeros(size - len(batch), *batch.shape[1:])])
            with torch.inference_mode():
                features = self.network(self.images.normalize(batch) if self.images else batch.float())
            count = len(range(*rows.indices(len(prepared))))
            found[rows] = self._check(features)[:count].float().cpu().numpy()

        if device.type != "cpu":
            for first in range(0, len(prepared), GPU_BATCH):
                encode_rows(slice(first, first + GPU_BATCH), GPU_BATCH)
        else:
            with _one_thread_each(threads) as pool:
                list(pool.map(lambda row: encode_rows(slice(row, row + 1), 1), range(len(prepared))))
        return found

    def _check(self, features: Tensor) -> Tensor:
        if features.dim() != 2 or features.shape[1] != self.features:
            raise DataError(
                f"the encoder {self.name} gave {tuple(features.shape)}; (samples, {self.features}) was expected"
            )
        return features


@contextmanager
def _one_thread_each(threads: int | None) -> Iterator[ThreadPoolExecutor]:
    """Threads that compute beside each other; torch itself uses one in each."""
    with ThreadPoolExecutor(threads or os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield pool


def _pillow() -> Any:
    return require_extra("images", "images", "PIL.Image")
