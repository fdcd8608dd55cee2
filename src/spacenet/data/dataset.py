"""A labeled data set in memory: raw arrays as their source gives them, not yet split into tasks or normalized."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spacenet.errors import DataError

if TYPE_CHECKING:  # numpy takes a third of the time that `spacenet data list` may take
    from spacenet.data.preprocessing import Array

Constants = float | tuple[float, ...] | None
"""A mean or a standard deviation: one number, one per channel of images, or unknown."""


@dataclass(frozen=True)
class Dataset:
    """Training and test samples with labels of any type that sorts.

    `scale` brings the inputs to about 0…1; `mean` and `std` are the data set's published constants, if it has any:
    one number, or one per channel of images (n, c, h, w).
    """

    name: str
    x_train: "Array"
    y_train: "Array"
    x_test: "Array"
    y_test: "Array"
    scale: float = 1.0
    mean: Constants = None
    std: Constants = None
    checksum: str = ""
    """Of the samples and labels, where they were read from a file of the user's; a run that resumes compares it."""
    encoder: str = ""
    """The name of the encoder whose features the samples are, if they are features."""

    def __post_init__(self) -> None:
        for part, x, y in (("train", self.x_train, self.y_train), ("test", self.x_test, self.y_test)):
            if x.ndim < 2 or y.ndim != 1 or len(x) != len(y):
                needed = "x needs one row per sample (n, …) and y one label per row (n,)"
                raise DataError(f"{self.name}: x_{part} has the shape {x.shape} and y_{part} {y.shape}; {needed}")
            if x.size == 0:
                raise DataError(f"{self.name}: x_{part} is empty")
        train, test = self.x_train.shape[1:], self.x_test.shape[1:]
        if train != test:
            raise DataError(
                f"{self.name}: the samples of x_train have the shape {train}, those of x_test {test}; they must agree"
            )
        for word, constants in (("mean", self.mean), ("std", self.std)):
            problem = check_constants(constants, train)
            if problem:
                raise DataError(f"{self.name}: {word} {problem}")
        if isinstance(self.std, tuple) and min(self.std) <= 0:
            raise DataError(f"{self.name}: std is {self.std}; every number must be above 0")

    @property
    def labels(self) -> list[object]:
        """The labels of the training samples, sorted."""
        import numpy as np

        return list(np.unique(self.y_train).tolist())

    def hold_out(self, fraction: float, seed: int = 0) -> "Dataset":
        """The same training data with a fraction of each class held out as the test set; the test data is not used.

        Samples are not copied.
        """
        import numpy as np

        from spacenet.data.memory import take_rows

        rng = np.random.default_rng(seed)
        held = np.zeros(len(self.y_train), dtype=bool)
        for label in np.unique(self.y_train):
            rows = rng.permutation(np.flatnonzero(self.y_train == label))
            if len(rows) < 2:
                raise DataError(f"{self.name}: class {label} has one sample only, so none of it can be held out")
            held[rows[: min(len(rows) - 1, max(1, round(fraction * len(rows))))]] = True
        train, test, y = np.flatnonzero(~held), np.flatnonzero(held), self.y_train
        x_train, x_test = take_rows(self.x_train, train), take_rows(self.x_train, test)
        return replace(self, x_train=x_train, y_train=y[train], x_test=x_test, y_test=y[test])


def check_constants(constants: Constants, shape: tuple[int, ...]) -> str:
    """What is wrong with constants for samples of this shape; nothing if they fit."""
    if isinstance(constants, tuple) and (len(shape) != 3 or len(constants) != shape[0]):
        needed = "use one number, or one per channel of images (c, h, w)"
        return f"has {len(constants)} numbers and samples have the shape {shape}; {needed}"
    return ""
