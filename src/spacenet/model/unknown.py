"""Samples of classes that a model does not know: which they are, what they are called, how well they are found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import SettingsError
from spacenet.model.labels import Label
from spacenet.model.scores import percentage

UNKNOWN = "unknown"
"""The label of such a sample where labels are texts, and in what the commands write."""
RATE = "the fraction of samples of known classes that may be called unknown"
COVERAGE = "the fraction of samples whose set has their class"


def check_rate(rate: object) -> float | None:
    """A false-alarm rate that can be wanted, or None. Raises `SettingsError` for anything else."""
    return rate if rate is None else _check_fraction(rate, RATE, "unknown")


def check_coverage(coverage: object) -> float:
    """A coverage of sets that can be wanted. Raises `SettingsError` for anything else."""
    return _check_fraction(coverage, COVERAGE, "coverage")


def _check_fraction(value: object, what: str, setting: str) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 < float(value) < 1:  # type: ignore[arg-type]
        raise SettingsError(f"{what} must be between 0 and 1, not {value!r}", setting=setting)
    return float(value)  # type: ignore[arg-type]


def unknown_label(classes: Sequence[Label], wanted: Label | None = None) -> Label:
    """The label of unknown samples: the wanted one, by default -1 if classes are numbers and otherwise "unknown".
    Raises `SettingsError` if a class has it."""
    numbers = all(isinstance(label, int | float) and not isinstance(label, bool) for label in classes)
    label = (-1 if numbers else UNKNOWN) if wanted is None else wanted
    if any(type(each) is type(label) and each == label for each in classes):
        raise SettingsError(f"{label!r} is one of the classes; choose another", setting="unknown_label")
    return label


@dataclass(frozen=True)
class Detection:
    """How well samples of unknown classes are found. What cannot be computed is None."""

    rate: float
    """The false-alarm rate that was wanted, in percent."""
    false_alarms: float | None
    """Samples of known classes that are called unknown, in percent."""
    found: float | None
    """Samples of unknown classes that are called unknown, in percent."""
    auroc: float | None
    """The probability that a sample of a known class is more typical than one of an unknown class."""

    @classmethod
    def of(cls, typicality: Array, known: Array, rate: float) -> "Detection":
        """From the typicality of samples, and which of them are of known classes."""
        inside, outside = typicality[known], typicality[~known]
        return cls(
            100 * rate,
            percentage((inside < rate).sum(), len(inside)),
            percentage((outside < rate).sum(), len(outside)),
            auroc(inside, outside),
        )


def auroc(high: Array, low: Array) -> float | None:
    """The probability that one of the first numbers is larger than one of the second, half of it where they are equal.

    As scikit-learn's `roc_auc_score`, importing which takes a second.
    """
    if not len(high) or not len(low):
        return None
    ordered = np.sort(low)
    below, upto = (np.searchsorted(ordered, high, side) for side in ("left", "right"))
    return float((below + upto).sum() / (2 * len(high) * len(low)))
