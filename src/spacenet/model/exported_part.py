"""What of a model an exported file computes: the part that takes samples or features, or all of it, from pixels on.

Each knows the samples that a written file is tried with, what the model answers to them, and what rounding may change.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import OnnxNetwork, short_name
from spacenet.encoders.inputs import ImageInput
from spacenet.errors import SettingsError
from spacenet.model.model import Model

ROUNDING = 1e-6
"""The relative rounding error of 32-bit scores; a probability changes by no more than its score does."""
ENCODER_ROUNDING, NEAR_ZERO = 2e-5, 1e-9
"""That of an encoder's features, after many layers; and of its features that are close to 0, as a part of the largest.
Between torch and onnxruntime, EfficientNet-Lite0 stays within half of the first."""
SHIFTS = 4
"""How often inputs are shifted to see what rounding may do."""
CHECKED_BATCHES = (1, 37)
CHECKED_IMAGES = (1, 8)
"""Fewer images: encoding one takes as long as thousands of other predictions."""
CHECKED_RANGE = 3.0  # inputs of the check lie within this many standard deviations of the first task's mean
STRANGE_RANGES = (0.01, 0.3, 1.0)
TOO_LARGE = (1e6, -1e15, 3e38, math.inf)
"""Ranges and values with which typicality is checked too."""
BLOCKS = (2, 1, 5, 16, 64)
"""Random images consist of so many times so many blocks; noise alone looks the same to an encoder everywhere. One block
is an image of one color, whose features are zeros."""


@dataclass
class HeadPart:
    """The part of a model that takes samples, or the features of an encoder."""

    model: Model
    network: nn.Module
    """Samples to probabilities, and what else the file returns."""
    unknown: float | None
    """The false-alarm rate, where unknown samples are looked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.model.input_shape

    @property
    def facts(self) -> dict[str, Any]:
        """What the file's metadata say of the inputs, and of unknown ones."""
        return {"input_shape": self.shape, **({} if self.unknown is None else {"unknown": self.unknown})}

    def example(self) -> Tensor:
        return torch.zeros(2, *self.shape)  # with one, torch would assume that there is always one

    def batches(self) -> Iterator[Array]:
        """Raw samples as in the training data, at each batch size of the check, and zeros."""
        rng = np.random.default_rng(0)
        for count in CHECKED_BATCHES:
            raw = self._draw(rng, count, CHECKED_RANGE)
            yield raw
            yield np.zeros_like(raw)

    def strange_batches(self) -> Iterator[Array]:
        """Raw samples from very near the mean, which may be typical, to those with values that are too large."""
        rng = np.random.default_rng(0)
        yield from (self._draw(rng, max(CHECKED_BATCHES), most) for most in STRANGE_RANGES)
        yield np.stack([np.full(self.shape, value, np.float32) for value in TOO_LARGE])

    def _draw(self, rng: np.random.Generator, count: int, most: float) -> Array:
        """Random raw samples within so many standard deviations of the mean."""
        each = rng.uniform(-most, most, (count, *self.shape))
        return self.model.fitted_normalization.invert(torch.from_numpy(each)).astype(np.float32)

    def features(self, x: Array) -> Array:
        """What the model answers for, of one batch."""
        return x

    def raw(self, x: Array) -> Array:
        """Samples that were read for `find_target` as the file takes them."""
        return self.model.check_inputs(x).astype(np.float32)

    def rounding(self, features: Array) -> Array:
        """About what rounding changes of them.

        Features of a network that has seen few samples may hardly vary. Class statistics, which are in the scale of
        that variance, then enlarge the last bits of features; other runtimes add these up in another order.
        """
        return ROUNDING * np.broadcast_to(self.model.fitted_normalization.std.numpy(), features.shape)

    def rounding_effect(self, features: Array, answer: Callable[[Array], Array]) -> float:
        """How far the model's own answers move when its inputs do, by about what rounding changes."""
        rng, step, expected = np.random.default_rng(0), self.rounding(features), answer(features)
        shifted = ((features + step * rng.choice((-1.0, 1.0), features.shape)) for _ in range(SHIFTS))
        return max(float(np.abs(answer(x.astype(np.float32)) - expected).max()) for x in shifted)


@dataclass
class PixelPart(HeadPart):
    """All of a model with an encoder: prepared images as bytes go in."""

    encoder: Encoder
    images: ImageInput

    @property
    def shape(self) -> tuple[int, ...]:
        return self.images.shape

    @property
    def facts(self) -> dict[str, Any]:
        known, images = self.encoder, self.images
        prepared = {"size": images.size, "crop": images.crop, "interpolation": images.interpolation}
        of_encoder = {"name": short_name(known.name), "version": known.version, "checksum": known.checksum}
        return {**super().facts, "images": prepared, "encoder": of_encoder}

    def example(self) -> Tensor:
        return super().example().byte()

    def batches(self) -> Iterator[Array]:
        rng, size = np.random.default_rng(0), self.images.size
        for count in CHECKED_IMAGES:
            yield np.stack([random_image(rng, size, BLOCKS[row % len(BLOCKS)]) for row in range(count)])
        yield np.zeros((1, *self.shape), np.uint8)

    def strange_batches(self) -> Iterator[Array]:
        yield from ()  # bytes are never too large, and random images are strange enough

    def features(self, x: Array) -> Array:
        return self.encoder.encode(x)

    def raw(self, x: Array) -> Array:
        return x.reshape(-1, *self.shape).astype(np.uint8)

    def rounding(self, features: Array) -> Array:
        of_encoder = ENCODER_ROUNDING * np.abs(features) + NEAR_ZERO * np.abs(features).max()
        return np.asarray(np.maximum(super().rounding(features), of_encoder))


class PixelNetwork(nn.Module):
    """Prepared images as bytes to probabilities."""

    def __init__(self, images: ImageInput, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.images, self.encoder, self.head = images, encoder, head

    def forward(self, pixels: Tensor) -> Any:
        return self.head(self.images.mask(self.encoder(self.images.normalize(pixels)), pixels))


def choose_part(model: Model, head: nn.Module, to: str, without_encoder: bool, rate: float | None = None) -> HeadPart:
    """The part of a model that is exported: all of it, unless the encoder is left out."""
    encoder = None if without_encoder else model.encoder
    if without_encoder and not model.config.preprocessing.encoder:
        raise SettingsError("the model has no encoder", setting="without_encoder")
    if encoder is None:
        return HeadPart(model, head, rate)
    network, problem = encoder.network, ""
    if encoder.images is None:
        problem = "takes no images, so the shape of its inputs is not known"
    elif isinstance(network, OnnxNetwork):
        problem = "" if to == "onnx" else f"is an ONNX file, which can only become part of an ONNX file, not of {to}"
    elif not isinstance(network, nn.Module):
        problem = "is a Python function, not a torch module"
    if problem or encoder.images is None:
        raise SettingsError(
            f"the encoder {encoder.name} {problem}, so it cannot be exported.",
            cli="Use --without-encoder to export the part that takes features.",
            python="Pass without_encoder=True to export the part that takes features.",
        )
    if isinstance(network, nn.Module):
        encoder.encode(np.zeros((1, *encoder.shape), np.uint8))  # it may have been on a GPU
        head = PixelNetwork(encoder.images, network.requires_grad_(False), head)
    return PixelPart(model, head, rate, encoder, encoder.images)


def find_target(model: Model, without_encoder: bool) -> Target:
    """What labeled data must be read as, for `export_model`: prepared images where the file takes them."""
    target = model.target(resize=True)
    encoder = target.encoder
    if encoder is None or encoder.images is None or without_encoder:
        return target
    pixels = math.prod(encoder.shape)
    as_bytes = replace(
        encoder, checksum="", features=pixels, network=lambda x: x.flatten(1), takes=Pixels(**vars(encoder.images))
    )
    return replace(target, shape=(pixels,), encoder=as_bytes)


@dataclass(frozen=True)
class Pixels(ImageInput):
    """Prepared images as they are."""

    def normalize(self, pixels: Tensor) -> Tensor:
        return pixels

    def mask(self, features: Tensor, batch: Tensor) -> Tensor:
        return features


def random_image(rng: np.random.Generator, size: int, blocks: int) -> Array:
    """An image (3, size, size) of blocks in random colors."""
    side = -(-size // blocks)
    colors = rng.integers(0, 256, (3, blocks, blocks), dtype=np.uint8)
    return np.repeat(np.repeat(colors, side, 1), side, 2)[:, :size, :size]
