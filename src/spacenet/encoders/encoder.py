"""An encoder: a frozen network, what it takes, and the features it gives."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from spacenet.encoders.inputs import Array, ArrayInput, ImageInput, Input
from spacenet.errors import DataError

AS_THEY_ARE = ArrayInput()
GPU_BATCH = 256
"""Images that are encoded at a time on a GPU; fewer are filled up, because features must not depend on their number."""


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
    takes : Input, optional
        What it takes (`spacenet.encoders.inputs`): `ImageInput`, `TextInput`, `SoundInput`, or by default `ArrayInput`,
        arrays as they are.
    """

    name: str
    version: str
    checksum: str
    features: int
    network: Callable[[Tensor], Tensor] = field(repr=False, compare=False)
    takes: Input = AS_THEY_ARE

    @property
    def identity(self) -> str:
        """What decides the features, besides the samples."""
        return f"{self.name} {self.checksum} {self.takes.identity}"

    @property
    def images(self) -> ImageInput | None:
        """How images are prepared; None for an encoder that takes no images."""
        return self.takes if isinstance(self.takes, ImageInput) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a prepared sample; empty where it varies."""
        return self.takes.shape

    def check(self, x: Array) -> None:
        """Raise `DataError` unless these are samples that the encoder takes."""
        if problem := self.takes.find_problem(x):
            raise DataError(f"the encoder {self.name} takes {self.takes.needs}; {problem}")

    def prepare(self, x: Array) -> Array:
        """Raw samples as the network takes them, but for normalization."""
        self.check(x)
        return self.takes.prepare(x)

    def encode(self, prepared: Array, device: torch.device | None = None, threads: int | None = None) -> Array:
        """The features of prepared samples, (n, features), in 32 bits. They do not depend on how many there are.

        On a CPU each sample is encoded alone, on one of several threads (by default as many as there are processors):
        that is as fast as a batch, and the size of a batch, like the number of torch's own threads, would decide how
        sums are rounded. On a GPU batches always have the same size; samples whose size varies are encoded alone there,
        too. The features of an image of one color are all 0.
        """
        device = device or torch.device("cpu")
        found = np.empty((len(prepared), self.features), np.float32)

        def encode_rows(rows: slice, size: int) -> None:
            batch = torch.from_numpy(np.stack(list(prepared[rows]))).to(device)
            if len(batch) < size:
                batch = torch.cat([batch, batch.new_zeros(size - len(batch), *batch.shape[1:])])
            with torch.inference_mode():
                features = self.takes.mask(self._check(self.network(self.takes.normalize(batch))), batch)
            count = len(range(*rows.indices(len(prepared))))
            found[rows] = features[:count].float().cpu().numpy()

        if device.type != "cpu":
            size = 1 if prepared.dtype.kind == "O" else GPU_BATCH
            for first in range(0, len(prepared), size):
                encode_rows(slice(first, first + size), size)
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
