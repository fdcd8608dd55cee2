"""How good a model is on labeled data: for each task and class, old against new classes, and its calibration.

The data is read in chunks; only counts and the most confident mistakes are kept of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from spacenet.data.arrays import samples_per_chunk
from spacenet.data.checks import check_labels
from spacenet.data.memory import Rows
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.model.labels import Label, distinct
from spacenet.model.model import Model
from spacenet.model.predictions import warn_of_scale
from spacenet.model.scores import (
    Calibration,
    ClassScores,
    Counts,
    Mistake,
    Mistakes,
    OldNew,
    class_scores,
    confident_mistakes,
    displayable,
    old_against_new,
    percentage,
)
from spacenet.model.unknown import Detection, check_rate
from spacenet.model.watching import Watch, WatchSummary
from spacenet.utils.text import plural, printable

MAX_NAMED = 10
"""Labels that a message names."""


@dataclass(frozen=True)
class TaskScores:
    """The samples of one task's classes. A class that came in several tasks counts in each of them."""

    number: int  # from 1
    classes: tuple[str, ...]
    samples: int
    accuracy: float | None
    """Among all classes (class-incremental), in percent; None without samples."""
    task_il_accuracy: float | None
    """If only the classes of the task compete (task-incremental)."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured. Accuracies are percentages, over the samples whose label the model knows."""

    accuracy: float
    samples: int
    unknown: Mapping[str, int]
    """Labels that the model does not know, and how many samples have each; these are not counted otherwise."""
    tasks: tuple[TaskScores, ...]
    classes: tuple[ClassScores, ...]
    """In the order in which the model learned them."""
    old_new: OldNew | None
    """None for a model that has learned one task only."""
    calibration: Calibration
    confusion: Counts
    """(true, predicted), in the order of `classes`."""
    mistakes: Mistakes
    detection: Detection | None = None
    """How well samples of unknown classes are found, where that was asked for."""
    watch: WatchSummary | None = None
    """How typical the samples predicted as each class are, where that was asked for; also of unknown classes."""

    @property
    def labels(self) -> list[list[str]]:
        """The classes by the task in which they came first; tasks without new classes are left out."""
        found: dict[int, list[str]] = {}
        for each in self.classes:
            found.setdefault(each.task, []).append(each.label)
        return list(found.values())

    def to_plain(self) -> dict[str, Any]:
        """Everything but the inputs of the mistakes, as JSON has it."""
        calibration = self.calibration
        detection: dict[str, Any] = {"detection": asdict(self.detection)} if self.detection else {}
        if self.watch:
            detection["watch"] = self.watch.to_plain()
        return {
            "accuracy": self.accuracy,
            "samples": self.samples,
            "unknown": dict(self.unknown),
            **detection,
            "tasks": [asdict(task) for task in self.tasks],
            "old_new": asdict(self.old_new) if self.old_new else None,
            "classes": [asdict(each) for each in self.classes],
            "calibration": {
                "ece": calibration.ece,
                "mean_confidence": calibration.mean_confidence,
                "bins": [asdict(each) for each in calibration.bins],
            },
            "confusion": {"labels": [each.label for each in self.classes], "counts": self.confusion.tolist()},
            "mistakes": [asdict(each) for each in self.mistakes.each],
        }


def evaluate_model(
    model: Model, x: Array | Rows, y: Array, columns: Sequence[str] = (), unknown: float | None = None
) -> Evaluation:
    """Evaluate a model on raw samples and their labels, chunk by chunk: they may lie in a file. `columns` are the names
    of a table's inputs. With `unknown`, the fraction of samples of known classes that may be called unknown, also
    measure how well samples of other classes are found.

    Raises `DataError` if the model knows none of the labels.
    """
    y = check_labels(y, "y")
    if len(x) != len(y):
        raise DataError(f"{len(x)} samples and {len(y)} labels; give one label per sample")
    tally, step = _Tally(model, check_rate(unknown)), samples_per_chunk(model.input_shape)
    warn_of_scale(model, np.asarray(x[:step]))
    for first in range(0, len(y), step):
        tally.add(np.asarray(x[first : first + step]), y[first : first + step], first)
    found = tally.result()
    return replace(found, mistakes=replace(found.mistakes, columns=tuple(columns)))


class _Tally:
    """Counts that grow with each chunk."""

    def __init__(self, model: Model, rate: float | None = None) -> None:
        self.model, self.classes, self.rate = model, model.classes, rate
        self.typicality: list[Array] = []
        """Of all samples, where it is asked for."""
        self.known: list[Array] = []
        self.watch = None if rate is None else Watch(self.classes, rate, window=None)
        count = len(self.classes)
        self.confusion = np.zeros((count, count), np.int64)
        self.own = [self._places(distinct(task)) for task in model.tasks]
        """For each task the positions of its classes."""
        self.right_in_task = np.zeros(len(model.tasks), np.int64)
        self.calibration, self.mistakes = Calibration.of(np.zeros(0), np.zeros(0, bool)), Mistakes()
        self.unknown: Counter[str] = Counter()

    def add(self, x: Array, y: Array, first: int) -> None:
        """Count a chunk, whose first sample has the number `first`."""
        labels, of_label = np.unique(y, return_inverse=True)
        places = self._places(labels.tolist())
        truth = places[of_label.reshape(-1)]
        counts = np.bincount(of_label.reshape(-1), minlength=len(labels)).tolist()
        for label, place, number in zip(labels.tolist(), places.tolist(), counts, strict=True):
            if place < 0:
                self.unknown[printable(label)] += number
        known = np.flatnonzero(truth >= 0)
        if self.watch is not None:
            self._watch(x, truth)
        if not len(known):
            return
        x, truth = x[known], truth[known]
        probabilities = self.model.predict_proba(x)
        predicted, confidence = probabilities.argmax(1), probabilities.max(1)
        np.add.at(self.confusion, (truth, predicted), 1)
        self.calibration = Calibration.merge([self.calibration, Calibration.of(confidence, predicted == truth)])
        for task, own in enumerate(self.own):
            if not len(own):  # its classes were removed
                continue
            rows = np.flatnonzero(np.isin(truth, own))
            self.right_in_task[task] += int((own[probabilities[np.ix_(rows, own)].argmax(1)] == truth[rows]).sum())
        rows = confident_mistakes(confidence, predicted, truth)
        found = tuple(
            Mistake(
                f"row {first + known[row]}",
                str(self.classes[truth[row]]),
                str(self.classes[predicted[row]]),
                100 * float(confidence[row]),
            )
            for row in rows
        )
        new = Mistakes(found, displayable(x[rows], self.model.fitted_normalization.scale)) if found else Mistakes()
        self.mistakes = Mistakes.merge([self.mistakes, new])

    def _watch(self, x: Array, truth: Counts) -> None:
        """Note how typical the samples of a chunk are, and of what."""
        assert self.watch is not None
        typicality = self.model.typicality(x)
        self.typicality.append(typicality)
        self.known.append(truth >= 0)
        some = typicality > 0  # of others the scores may be too large to compute
        labels: list[Label | None] = [None] * len(x)
        for row, label in zip(np.flatnonzero(some), self.model.predict(x[some]) if some.any() else (), strict=True):
            labels[row] = label
        self.watch.update(labels, typicality)

    def _places(self, labels: Sequence[Label]) -> Counts:
        """For each label the number of its class, -1 if the model does not know it.

        Labels of another type are compared as text: a file may have the numbers 1 and 2 as 1.0 and 2.0, or as words.
        """
        exact = {(type(label), label): number for number, label in enumerate(self.classes)}
        texts = {_text(label): number for number, label in enumerate(self.classes)}
        return np.array([exact.get((type(label), label), texts.get(_text(label), -1)) for label in labels], np.int64)

    def result(self) -> Evaluation:
        samples, firsts = int(self.confusion.sum()), self._first_tasks()
        if not samples:
            raise DataError(self._nothing_known())
        names = [str(label) for label in self.classes]
        by_task = [
            [name for name, first in zip(names, firsts, strict=True) if first == task] for task in range(len(self.own))
        ]
        tasks = [
            TaskScores(
                task + 1,
                tuple(names[place] for place in own),
                total := int(self.confusion[own].sum()),
                percentage(self.confusion[own, own].sum(), total),
                percentage(self.right_in_task[task], total),
            )
            for task, own in enumerate(self.own)
        ]
        return Evaluation(
            accuracy=percentage(np.trace(self.confusion), samples) or 0.0,
            samples=samples,
            unknown=dict(sorted(self.unknown.items())),
            tasks=tuple(tasks),
            classes=tuple(class_scores(self.confusion, by_task)),
            old_new=old_against_new(self.confusion, firsts.count(len(self.own) - 1)),
            calibration=self.calibration,
            confusion=self.confusion,
            mistakes=self.mistakes,
            detection=self._detection(),
            watch=None if self.watch is None else self.watch.summary(),
        )

    def _detection(self) -> Detection | None:
        if self.rate is None:
            return None
        return Detection.of(np.concatenate(self.typicality), np.concatenate(self.known), self.rate)

    def _first_tasks(self) -> list[int]:
        """For each class the task in which it came first; they come in this order."""
        return [next(task for task, own in enumerate(self.own) if place in own) for place in range(len(self.classes))]

    def _nothing_known(self) -> str:
        if not self.unknown:
            return "there are no samples"
        return (
            f"the model knows none of the {plural(len(self.unknown), 'label')} ({_first_labels(list(self.unknown))}); "
            f"its classes are {_first_labels(self.classes)}"
        )


def _text(label: Label) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _first_labels(labels: Sequence[Label]) -> str:
    return ", ".join(printable(label) for label in labels[:MAX_NAMED]) + (", …" if len(labels) > MAX_NAMED else "")
