"""A labelled data set in memory, as its source gives it: raw arrays, not yet cut into tasks or normalised."""

from dataclasses import dataclass, replace

import numpy as np

from spacenet.errors import DataError

Array = np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Samples with labels of any type that sorts.

    `scale` brings the inputs to about 0…1; `mean` and `std` are the data set's published constants, if it has any:
    one number, or one per channel of images (n, c, h, w).
    """

    name: str
    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    scale: float = 1.0
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for part, x, y in (("train", self.x_train, self.y_train), ("test", self.x_test, self.y_test)):
            if len(x) != len(y) or x.ndim < 2 or y.ndim != 1:
                raise DataError(
                    f"{self.name}: x_{part} has the shape {x.shape} and y_{part} {y.shape}; "
                    "give x one row per sample (n, …) and y one label per row (n,)"
                )
            if len(x) == 0:
                raise DataError(f"{self.name}: x_{part} is empty")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DataError(
                f"{self.name}: the samples of x_train have the shape {self.x_train.shape[1:]}, "
                f"those of x_test {self.x_test.shape[1:]}; they must agree"
            )
        for word, constants in (("mean", self.mean), ("std", self.std)):
            if isinstance(constants, tuple) and (self.x_train.ndim != 4 or len(constants) != self.x_train.shape[1]):
                raise DataError(
                    f"{self.name}: {word} has {len(constants)} numbers and x_train the shape {self.x_train.shape}; "
                    "give one number, or one per channel of images (n, c, h, w)"
                )
        if isinstance(self.std, tuple) and min(self.std) <= 0:
            raise DataError(f"{self.name}: std is {self.std}; every number must be above 0")

    @property
    def labels(self) -> list[object]:
        """The labels of the training samples, sorted."""
        return list(np.unique(self.y_train).tolist())

    def held_out(self, fraction: float) -> "Dataset":
        """The same training data with a part of each class held out in place of the test set, which is not touched."""
        rng = np.random.default_rng(0)
        held = np.zeros(len(self.y_train), dtype=bool)
        for label in np.unique(self.y_train):
            rows = rng.permutation(np.flatnonzero(self.y_train == label))
            held[rows[: max(1, round(fraction * len(rows)))]] = True
        return replace(
            self,
            x_train=self.x_train[~held],
            y_train=self.y_train[~held],
            x_test=self.x_train[held],
            y_test=self.y_train[held],
        )
