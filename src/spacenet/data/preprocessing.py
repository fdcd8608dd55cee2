"""The normalization of inputs. It is fitted once, on the first task: later tasks must not influence it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet.config.model import PreprocessingConfig
from spacenet.data.checks import PIXEL_SCALE
from spacenet.encoders.loading import load_encoder

Array = np.ndarray[Any, Any]
CONSTANTS = ("scale", "mean", "std")
SMALLEST = 1e-15
SCALE_RATIO = 10.0
"""Columns of a table have different scales if the largest standard deviation is this many times the smallest."""
MANY_COLUMNS, SMALL_SCALES = 20, 0.25
"""Of so many columns, this part may vary less: they may be pixels, some of which are hardly ever set."""
OUTLIER = 5.0
"""Values of a column that lie further outside its interquartile range, in multiples of it, are cut off in the fit."""
CENTERING = 0.5
CLIP = 10.0
"""The largest magnitude of normalized values of a table, in standard deviations."""
FAR = 10.0
"""How many times as large as that a value may be before it is not cut off any more, but like nothing ever seen."""
LEAST_SPREAD = 1e-6
"""A column is divided by at least this part of its mean: one that is almost constant at first may vary later."""
MAX_ROWS = 100_000
"""Rows that quantiles are computed from."""


def resolve_preprocessing(
    config: PreprocessingConfig, x: Array, known: Mapping[str, Any] | None = None
) -> PreprocessingConfig:
    """The configuration with what is known of a data set, or suits raw values like these, in place of None."""
    known = known or {}
    constants = {key: known.get(key) if getattr(config, key) is None else getattr(config, key) for key in CONSTANTS}
    if constants["scale"] is None:
        constants["scale"] = PIXEL_SCALE if x.dtype == np.uint8 else 1.0
    per = config.standardize
    if per is None and constants["mean"] is None and constants["std"] is None:
        per = "features" if x.ndim == 2 and x.dtype != np.uint8 else "channels" if x.ndim == 4 else None
    clip = CLIP if config.clip is None and per == "features" else config.clip
    centering = CENTERING if config.centering is None else config.centering
    checksum, version = config.encoder_checksum, config.encoder_version
    if config.encoder and not checksum:
        encoder = load_encoder(config.encoder)
        checksum, version = encoder.checksum, encoder.version or None
    resolved = replace(config, standardize=per or "all", clip=clip, centering=centering, **constants)
    root = bool(config.encoder) if config.root is None else config.root
    return replace(resolved, encoder_checksum=checksum, encoder_version=version, root=root)


@dataclass(frozen=True)
class Normalization:
    """(x · scale − mean) / std, with magnitudes of at most `clip`; `mean` and `std` broadcast to a sample's shape. With
    `root`, x · scale is replaced by the square root of its magnitude, with its sign."""

    scale: float
    mean: Tensor
    std: Tensor
    clip: float = math.inf
    root: bool = False

    @classmethod
    def fit(cls, first: Array, config: PreprocessingConfig) -> "Normalization":
        """Fit it to the raw inputs of the first task."""
        config = resolve_preprocessing(config, first)
        assert config.scale is not None
        assert config.centering is not None
        ends = math.inf if config.clip is None else config.clip, bool(config.root)
        if config.standardize == "features" and config.mean is None and config.std is None:
            return cls(config.scale, *_fit_features(first, config.scale, root=ends[1]), *ends)
        x = _to_scaled_tensor(first, config.scale, ends[1])
        each = config.standardize == "channels" and x.dim() == 4
        constant = _mean(x, each) if config.mean is None else _per_channel(config.mean)
        mean = torch.lerp(constant.expand(x.shape[1:]), x.mean(0), config.centering)
        if isinstance(config.std, tuple):
            return cls(config.scale, mean, _per_channel(config.std), *ends)
        spread = x - mean
        if each and config.std is None:
            return cls(config.scale, mean, _root_mean_squares(spread), *ends)
        overall = config.std or float(spread.square().mean().sqrt())
        if overall < SMALLEST:  # squares of very small numbers are 0 in 32 bits
            overall = float(spread.double().square().mean().sqrt()) or 1.0
        return cls(config.scale, mean, torch.tensor(overall), *ends)

    def __call__(self, x: Array) -> Tensor:
        made = _to_scaled_tensor(x, self.scale, self.root).sub_(self.mean).div_(self.std)
        return made.clamp_(-self.clip, self.clip) if math.isfinite(self.clip) else made

    def is_far(self, x: Array) -> Array:
        """Which of several samples have a value that is far beyond where it is cut off, (n,)."""
        if not math.isfinite(self.clip):
            return np.zeros(len(x), bool)
        made = replace(self, clip=math.inf)(x).flatten(1)
        return ~np.asarray((made.abs() <= FAR * self.clip).all(1))

    def invert(self, z: Tensor) -> Array:
        """Raw values that are normalized to these, where they are not cut off."""
        scaled = z * self.std + self.mean
        scaled = scaled.abs() * scaled if self.root else scaled
        return np.asarray((scaled / (self.scale or 1.0)).numpy())


def _fit_features(first: Array, scale: float, *, root: bool) -> tuple[Tensor, Tensor]:
    """The mean and the standard deviation of each feature, outliers cut off; columns of one scale share the latter."""
    x = first.reshape(len(first), -1).astype(np.float64) * scale
    if root:
        x = np.sign(x) * np.sqrt(np.abs(x))
    low, high = np.quantile(x[:: max(1, len(x) // MAX_ROWS)], (0.25, 0.75), axis=0)
    reach = np.where(high > low, OUTLIER * (high - low), np.inf)  # nothing is known of how a constant half varies
    np.clip(x, low - reach, high + reach, out=x)
    mean, own = x.mean(0), x.std(0)
    varying = own[own > SMALLEST]
    std: Any
    if not len(varying):
        std = 1.0
    elif varying.max() <= SCALE_RATIO * np.quantile(varying, SMALL_SCALES if len(varying) >= MANY_COLUMNS else 0.0):
        # Not each by its own: features such as pixels, which hardly vary at first, may do so later.
        std = np.sqrt(np.square(own).mean())
    else:
        typical = np.where(mean == 0, 1.0, np.abs(mean))
        std = np.where(own > SMALLEST, np.maximum(own, LEAST_SPREAD * typical), typical).reshape(first.shape[1:])
    return torch.from_numpy(mean.reshape(first.shape[1:])).float(), torch.tensor(std, dtype=torch.float32)


def _mean(x: Tensor, each_channel: bool) -> Tensor:
    return x.mean((0, 2, 3)).reshape(-1, 1, 1) if each_channel else x.mean()


def _root_mean_squares(spread: Tensor) -> Tensor:
    """Of each channel; one that is constant gets that of all."""
    own = spread.square().mean((0, 2, 3)).sqrt()
    overall = float(own.square().mean().sqrt())
    return torch.where(own > SMALLEST, own, overall if overall > SMALLEST else 1.0).reshape(-1, 1, 1)


def _to_scaled_tensor(x: Array, scale: float, root: bool) -> Tensor:
    scaled = torch.from_numpy(x.astype(np.float32)).mul_(scale)
    return signed_root(scaled) if root else scaled


def signed_root(x: Tensor) -> Tensor:
    """The square root of each magnitude, with its sign."""
    return x.sign() * x.abs().sqrt()


def _per_channel(constants: float | tuple[float, ...]) -> Tensor:
    """Constants in a shape that broadcasts to samples: (), or (c, 1, 1) for images (c, h, w)."""
    values = torch.tensor(constants)
    return values.reshape(-1, 1, 1) if isinstance(constants, tuple) else values
