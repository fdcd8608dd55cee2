"""Watching a model at work: how often it meets what it does not know, and whether its classes drift.

What is typical of a class was measured on its own samples when it was learned, so of new samples of the same kind about
5 % have a typicality below 0.05, 10 % one below 0.1, and so on. A class has drifted where clearly more than that are
below some level, among its last few hundred samples. Detectors such as river's Page-Hinkley or ADWIN compare a stream
with its own past; here what is usual is known from the start, so a stream that has changed before the first prediction
is found too, and neither samples nor single figures have to be kept: only counts are.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.model.labels import Label
from spacenet.model.unknown import check_rate
from spacenet.utils.files import real_path, report_os_errors, save_text

BINS = 20
"""Of typicality, equally wide."""
WINDOW = 500
"""The last samples of a class that are looked at: between half as many and so many."""
LEAST = 30
"""Fewer samples say nothing."""
DOUBT = 0.001
"""The probability that a class is said to have drifted by chance, each time that one looks."""
TOLERANCE = 0.1
"""How much more samples may be below a level: typicality is about right, and small changes do not matter."""
SUFFIX = ".watch.json"
DEFAULT_RATE = 0.05
COUNTS = ("seen", "unknown", "bins", "recent_unknown", "others")


@dataclass(frozen=True)
class ClassWatch:
    """What was seen of one class."""

    label: str
    samples: int
    """Predictions of the class, since the beginning."""
    recent: int
    """Those that the other figures are of."""
    unknown: float | None
    """How many of these are so little typical that they are unknown, in percent."""
    typicality: float | None
    """Their mean typicality, about: 0.5 is usual."""
    excess: float | None
    """How much more of them than usual are below a level of typicality, at most, in percentage points."""
    drifted: bool


@dataclass(frozen=True)
class WatchSummary:
    """What was seen of all predictions."""

    samples: int
    unknown: int
    """Samples that are like no class, since the beginning."""
    unknown_rate: float | None
    """The same in percent."""
    recent_unknown_rate: float | None
    """Of the recent samples of each class, all together."""
    wanted_rate: float
    """How many samples of known classes are called unknown as well, in percent."""
    classes: tuple[ClassWatch, ...]

    @property
    def drifted(self) -> list[str]:
        return [each.label for each in self.classes if each.drifted]

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "drifted": self.drifted}


class Watch:
    """Counts of predictions. Its size depends on the number of classes alone.

    Parameters
    ----------
    classes : sequence of labels
        Those of the model, which may get more: see `extend`.
    rate : float
        Samples that are less typical than this are unknown.
    window : int or None
        The last samples of a class that are looked at; None for all.
    """

    def __init__(self, classes: Sequence[Label], rate: float = DEFAULT_RATE, window: int | None = WINDOW) -> None:
        self.rate, self.window = check_rate(rate) or DEFAULT_RATE, window
        self.labels = [str(label) for label in classes]
        count = len(self.labels)
        self.seen, self.unknown = np.zeros(count, np.int64), np.zeros(count, np.int64)
        """For each class, since the beginning."""
        self.bins = np.zeros((2, count, BINS), np.int64)
        """Of typicality, for each class: the half of the window that is filled now, and the one before."""
        self.recent_unknown = np.zeros((2, count), np.int64)
        self.others = np.zeros(2, np.int64)
        """Samples whose label is no class, and how many of them are unknown."""

    def extend(self, classes: Sequence[Label]) -> None:
        """Go on with other classes: what was counted of those that stay is kept."""
        new = Watch(classes, self.rate, self.window)
        new.others = self.others
        pairs = [(number, self.labels.index(label)) for number, label in enumerate(new.labels) if label in self.labels]
        if pairs:
            to, of = map(list, zip(*pairs, strict=True))
            new.seen[to], new.unknown[to] = self.seen[of], self.unknown[of]
            new.bins[:, to], new.recent_unknown[:, to] = self.bins[:, of], self.recent_unknown[:, of]
        self.__dict__ = new.__dict__

    def update(self, labels: Sequence[Label | None], typicality: Array) -> None:
        """Count predictions: the class of each sample and its typicality. An unknown sample may have the label of the
        class that is the most probable, so that it is counted there, or one that is no class, such as None."""
        if len(labels) != len(typicality):
            raise DataError(
                f"{len(labels)} labels and {len(typicality)} figures of typicality; give one for each label"
            )
        place = {label: number for number, label in enumerate(self.labels)}
        classes = np.array([place.get(str(label), -1) for label in labels], np.int64)
        values, known = np.clip(np.nan_to_num(typicality), 0.0, 1.0), classes >= 0
        unknown = values < self.rate
        self.others += ((~known).sum(), (unknown & ~known).sum())
        classes, values, unknown = classes[known], values[known], unknown[known]
        bins = np.minimum((values * BINS).astype(np.int64), BINS - 1)
        np.add.at(self.seen, classes, 1)
        np.add.at(self.unknown, classes[unknown], 1)
        np.add.at(self.bins[0], (classes, bins), 1)
        np.add.at(self.recent_unknown[0], classes[unknown], 1)
        if self.window is not None:
            full = self.bins[0].sum(1) >= self.window / 2
            for counts in (self.bins, self.recent_unknown):
                counts[1, full], counts[0, full] = counts[0, full], 0

    def summary(self) -> WatchSummary:
        classes = tuple(self._class(number) for number in range(len(self.labels)))
        samples, unknown = int(self.seen.sum() + self.others[0]), int(self.unknown.sum() + self.others[1])
        recent = int(self.bins.sum())
        return WatchSummary(
            samples,
            unknown,
            100 * unknown / samples if samples else None,
            100 * int(self.recent_unknown.sum()) / recent if recent else None,
            100 * self.rate,
            classes,
        )

    def _class(self, number: int) -> ClassWatch:
        counts = self.bins[:, number].sum(0)
        recent, seen = int(counts.sum()), int(self.seen[number])
        if not recent:
            return ClassWatch(self.labels[number], seen, 0, None, None, None, drifted=False)
        unknown = 100 * int(self.recent_unknown[:, number].sum()) / recent
        mean = float((counts * (np.arange(BINS) + 0.5)).sum() / (BINS * recent))
        below = counts.cumsum() / recent - np.arange(1, BINS + 1) / BINS
        excess = float(below.max())
        return ClassWatch(
            self.labels[number], seen, recent, unknown, mean, 100 * excess, drifted=excess > allowed_excess(recent)
        )

    # Files

    def to_plain(self) -> dict[str, Any]:
        """All that is counted, as JSON has it."""
        counts = {name: getattr(self, name).tolist() for name in COUNTS}
        return {"labels": self.labels, "rate": self.rate, "window": self.window, **counts}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """From what `to_plain` returned. Raises `ValueError` for anything else."""
        labels, window = plain.get("labels"), plain.get("window")
        if not isinstance(labels, list) or not all(isinstance(each, str) for each in labels):
            raise ValueError("labels is no list of texts")
        if not (window is None or (isinstance(window, int) and window > 0)):
            raise ValueError("window is no number of samples")
        rate = plain.get("rate")
        if not isinstance(rate, float) or not 0 < rate < 1:
            raise ValueError("rate is not between 0 and 1")
        made = cls(labels, rate, window)
        for name in COUNTS:
            counts = np.array(plain.get(name), dtype=object)
            shape = getattr(made, name).shape
            if counts.shape != shape or not all(type(each) is int and 0 <= each < 2**62 for each in counts.flat):
                raise ValueError(f"{name} is no list of counts")
            setattr(made, name, counts.astype(np.int64))
        return made


def allowed_excess(samples: int) -> float:
    """How much more of so many samples may be below a level than usual, as a fraction: more happens by chance with a
    probability of at most `DOUBT`.

    Massart: The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality. Annals of Probability 18, 1990.
    """
    return TOLERANCE + math.sqrt(math.log(1 / DOUBT) / (2 * samples)) if samples >= LEAST else math.inf


def watch_path(model: Path) -> Path:
    """Where the counts of a model file are kept."""
    real = real_path(model)
    return real.with_name(real.name + SUFFIX)


def save_watch(model: Path, watch: Watch) -> None:
    """Keep counts beside the file of their model."""
    save_text(watch_path(model), json.dumps(watch.to_plain()) + "\n")


def load_watch(model: Path) -> Watch | None:
    """The counts beside a model file; None if there are none. Raises `DataError` if they cannot be read."""
    path = watch_path(model)
    if not path.exists():
        return None
    with report_os_errors(path, "read"):
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict):
            raise ValueError("it is no object")
        return Watch.from_plain(plain)
    except (ValueError, RecursionError) as error:
        reason = f"{path} does not hold what was counted of predictions ({error}); remove it to count anew"
        raise DataError(reason) from error
