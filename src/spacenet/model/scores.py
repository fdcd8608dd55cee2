"""Figures of a classifier: precision and recall of each class, calibration, old against new classes, mistakes.

All follow from counts, so that they can be computed in chunks and added up. Percentages are between 0 and 100.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacenet.data.preprocessing import Array

BINS = 15
"""Of confidence, equally wide, as in the literature on calibration."""
MAX_MISTAKES = 24
MAX_PIXELS = 128
"""Pixels of a mistake's height or width that are kept; of larger images every second, third, … one."""
MAX_FEATURES = 64
"""Values of a mistake that are kept, where it is not an image."""
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class ClassScores:
    """One class. What cannot be computed is None: recall without samples, precision if it is never predicted."""

    label: str
    task: int
    """The task in which the class came first, from 1."""
    samples: int
    predicted: int
    """Samples that were predicted as this class, rightly or not."""
    precision: float | None
    recall: float | None
    f1: float | None


def class_scores(confusion: Counts, labels: Sequence[Sequence[str]]) -> list[ClassScores]:
    """The scores of each class; `confusion` is (true, predicted), `labels` are the classes of each task in its order.

    As scikit-learn's `precision_recall_fscore_support`, which a run does without: importing it takes a second.
    """
    right, samples, predicted = np.diagonal(confusion), confusion.sum(1), confusion.sum(0)
    named = [(label, task) for task, own in enumerate(labels, 1) for label in own]
    return [
        ClassScores(
            label,
            task,
            int(samples[i]),
            int(predicted[i]),
            percentage(right[i], predicted[i]),
            percentage(right[i], samples[i]),
            percentage(2 * right[i], samples[i] + predicted[i]),
        )
        for i, (label, task) in enumerate(named)
    ]


def percentage(part: float, whole: float) -> float | None:
    """None of nothing."""
    return 100 * float(part) / float(whole) if whole else None


@dataclass(frozen=True)
class CalibrationBin:
    """Samples whose predicted class has a probability in one range."""

    samples: int = 0
    right: int = 0
    confidence: float = 0.0
    """The sum of their probabilities."""


@dataclass(frozen=True)
class Calibration:
    """How far the probability of the predicted class is the chance that the prediction is right."""

    bins: tuple[CalibrationBin, ...]
    """Of equal width, from 0 to 1."""

    @classmethod
    def of(cls, confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> "Calibration":
        """From the probability of each prediction, 0 to 1, and whether it is right."""
        place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
        samples, correct = np.bincount(place, minlength=BINS), np.bincount(place[right], minlength=BINS)
        total = np.bincount(place, confidence, minlength=BINS)
        return cls(tuple(map(CalibrationBin, samples.tolist(), correct.tolist(), total.tolist())))

    @classmethod
    def merge(cls, several: Iterable["Calibration"]) -> "Calibration":
        """The calibration of all samples together."""
        columns = zip(*(each.bins for each in several), strict=True)
        return cls(
            tuple(
                CalibrationBin(
                    sum(each.samples for each in column),
                    sum(each.right for each in column),
                    sum(each.confidence for each in column),
                )
                for column in columns
            )
        )

    @property
    def samples(self) -> int:
        return sum(each.samples for each in self.bins)

    @property
    def accuracy(self) -> float:
        return percentage(sum(each.right for each in self.bins), self.samples) or 0.0

    @property
    def mean_confidence(self) -> float:
        return percentage(sum(each.confidence for each in self.bins), self.samples) or 0.0

    @property
    def ece(self) -> float:
        """The expected calibration error: how far confidence and accuracy of a bin differ, on average over samples."""
        return percentage(sum(abs(each.right - each.confidence) for each in self.bins), self.samples) or 0.0


@dataclass(frozen=True)
class OldNew:
    """The classes of the last task against those learned before, and where the errors go."""

    old_samples: int
    new_samples: int
    old_accuracy: float | None
    new_accuracy: float | None
    old_as_new: int
    """Samples of old classes that are predicted as a new one."""
    new_as_old: int
    within_old: int
    """Samples of old classes that are predicted as another old one."""
    within_new: int


def old_against_new(confusion: Counts, new: int) -> OldNew | None:
    """The last `new` classes against all others; None where one side has no classes."""
    old = len(confusion) - new
    if old < 1 or new < 1:
        return None
    own, later = confusion[:old], confusion[old:]
    old_right, new_right = int(np.trace(own[:, :old])), int(np.trace(later[:, old:]))
    return OldNew(
        old_samples=int(own.sum()),
        new_samples=int(later.sum()),
        old_accuracy=percentage(old_right, own.sum()),
        new_accuracy=percentage(new_right, later.sum()),
        old_as_new=int(own[:, old:].sum()),
        new_as_old=int(later[:, :old].sum()),
        within_old=int(own[:, :old].sum()) - old_right,
        within_new=int(later[:, old:].sum()) - new_right,
    )


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction."""

    where: str
    """The sample's name or row."""
    true: str
    predicted: str
    confidence: float
    """The probability of the predicted class, in percent."""


@dataclass(frozen=True)
class Mistakes:
    """The wrong predictions that were made with the highest confidence, the most confident first."""

    each: tuple[Mistake, ...] = ()
    inputs: Array | None = None
    """The raw sample of each: images (n, h, w) or (n, 3, h, w) as bytes, other samples as (n, values)."""
    columns: tuple[str, ...] = ()
    """The names of the values, where samples are rows of a table that has them."""

    @classmethod
    def merge(cls, several: Sequence["Mistakes"]) -> "Mistakes":
        """The most confident ones of all."""
        found = [each for each in several if each.inputs is not None]
        if len(found) < 2:
            return found[0] if found else cls()
        each = [mistake for mistakes in found for mistake in mistakes.each]
        order = sorted(range(len(each)), key=lambda number: -each[number].confidence)[:MAX_MISTAKES]
        inputs = np.concatenate([mistakes.inputs for mistakes in found if mistakes.inputs is not None])
        return cls(tuple(each[number] for number in order), inputs[order])


def confident_mistakes(confidence: Array, predicted: Array, truth: Array) -> Counts:
    """Rows of the wrong predictions with the highest confidence, the most confident first."""
    wrong = np.flatnonzero(predicted != truth)
    order = np.argsort(-confidence[wrong], kind="stable")[:MAX_MISTAKES]
    return np.asarray(wrong[order], np.int64)


def is_image(shape: Sequence[int]) -> bool:
    """Whether samples of this shape are images: (h, w), or 1 or 3 channels of them."""
    return len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))


def displayable(x: Array, scale: float) -> Array:
    """Raw samples as `Mistakes` keeps them. `scale` brings their values to about 0…1.

    Values of images become bytes: by `scale` if that brings them to between 0 and 1, else each image by its own lowest
    and highest value.
    """
    if not is_image(x.shape[1:]):
        return np.asarray(x.reshape(len(x), -1)[:, :MAX_FEATURES], np.float64)
    x = x[:, 0] if x.ndim == 4 and x.shape[1] == 1 else x
    step = -(-max(x.shape[-2:]) // MAX_PIXELS)
    values = np.asarray(x[..., ::step, ::step], np.float64) * scale
    flat = values.reshape(len(x), -1)
    if flat.size and (flat.min() < 0 or flat.max() > 1):
        low, high = (edge.reshape(-1, *[1] * (x.ndim - 1)) for edge in (flat.min(1), flat.max(1)))
        values = (values - low) / np.where(high > low, high - low, 1.0)
    return np.asarray(np.rint(255 * values), np.uint8)
