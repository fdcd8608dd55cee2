"""A model's predictions, as lines of text, CSV or JSON."""

import csv
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spacenet.data.arrays import MAX_SAMPLES
from spacenet.data.checks import looks_scaled
from spacenet.data.inputs import Chunk
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.unknown import UNKNOWN
from spacenet.utils.text import printable

log = logging.getLogger("spacenet")
Format = Literal["text", "csv", "jsonl"]
WIDEST = 40  # labels up to this length are aligned


@dataclass(frozen=True)
class Prediction:
    """The most probable classes of one sample, the best first."""

    input: str
    row: int | None
    classes: Sequence[tuple[Label, float]]  # each with its probability; none if the sample is unknown
    typicality: float | None = None
    """Where unknown samples are looked for, about the fraction of its class's own samples that are less typical."""
    classes_of_set: Sequence[Label] | None = None
    """Where sets are asked for, the classes that it may be of."""


def warn_of_scale(model: Model, x: Array) -> None:
    """Warn if a model that learned from bytes gets values between 0 and 1."""
    if looks_scaled(x, model.fitted_normalization.scale):
        log.warning(
            "spacenet: warning: the model learned from bytes (0 to 255), and these values lie between 0 and 1; "
            "multiply them by 255"
        )


@dataclass(frozen=True)
class Measured:
    """What a model says of samples, one row for each, before it is an answer: what is unknown and how many classes
    are listed is decided later."""

    probabilities: Array
    """(n, classes); a row of zeros if the sample is like no class and its values are too large to compute with."""
    typicality: Array | None = None
    """(n,), where it is asked for."""
    sets: Array | None = None
    """(n, classes) as booleans, where sets are asked for."""

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, rows: slice) -> "Measured":
        typicality, sets = (None if each is None else each[rows] for each in (self.typicality, self.sets))
        return Measured(self.probabilities[rows], typicality, sets)

    def is_unknown(self, rate: float | None) -> Array:
        """Which samples are like no class; none of them without a rate."""
        if rate is None or self.typicality is None:
            return np.zeros(len(self), bool)
        return self.typicality < rate

    def predictions(
        self, classes: Sequence[Label], inputs: Sequence[str], rows: Sequence[int | None], top: int, rate: float | None
    ) -> list[Prediction]:
        """The most probable classes of each sample, none of unknown ones."""
        best = self._best(top)
        shares = self.probabilities[np.arange(len(self))[:, None], best].tolist()
        unknown = [False] * len(self) if rate is None else self.is_unknown(rate).tolist()
        typicality = [None] * len(self) if rate is None or self.typicality is None else self.typicality.tolist()
        sets = [None] * len(self) if self.sets is None else [np.flatnonzero(own).tolist() for own in self.sets]
        return [
            Prediction(
                name,
                row,
                () if strange else [(classes[number], share) for number, share in zip(numbers, own, strict=True)],
                typical,
                None if of_set is None else [classes[number] for number in of_set],
            )
            for name, row, strange, numbers, own, typical, of_set in zip(
                inputs, rows, unknown, best.tolist(), shares, typicality, sets, strict=True
            )
        ]

    def _best(self, top: int) -> Array:
        """The numbers of the most probable classes of each sample."""
        if top == 1:
            return np.asarray(self.probabilities.argmax(1)[:, None])
        return np.argsort(-self.probabilities, axis=1, kind="stable")[:, :top]


def measure(model: Model, x: Array, typicality: bool = False, coverage: float | None = None) -> Measured:
    """The probabilities of samples, and where asked for their typicality and their sets of classes."""
    sets = None if coverage is None else model.predict_set(x, coverage)
    if not typicality:
        return Measured(model.predict_proba(x), None, sets)
    typical = model.typicality(x)
    try:
        return Measured(model.predict_proba(x), typical, sets)
    except DataError:  # values too large to compute with are like no class
        some, probabilities = typical > 0, np.zeros((len(x), len(model.classes)))
        if some.any():
            probabilities[some] = model.predict_proba(x[some])
        return Measured(probabilities, typical, sets)


def predict_chunk(
    model: Model, chunk: Chunk, top: int = 1, unknown: float | None = None, coverage: float | None = None
) -> list[Prediction]:
    """Predict; with `unknown`, samples that are like no class have none: that many of those of known classes, too. With
    `coverage`, each has its set of classes."""
    found = measure(model, chunk.x, unknown is not None, coverage)
    if not np.isfinite(found.probabilities).all():
        bad = int(np.flatnonzero(~np.isfinite(found.probabilities).all(axis=1))[0])
        reason = "the values are too large for the network; are they scaled like those that it learned from?"
        raise DataError(f"{_name(chunk.inputs[bad], chunk.rows[bad], True)}: {reason}")
    return found.predictions(model.classes, chunk.inputs, chunk.rows, top, unknown)


def accuracy(model: Model, x: Array, y: Array) -> float:
    """The accuracy in percent. Samples with a label that the model does not know count as wrong."""
    place = {(type(label), label): number for number, label in enumerate(model.classes)}
    right = np.array([place.get((type(label), label), -1) for label in y.tolist()])
    parts = (slice(first, first + MAX_SAMPLES) for first in range(0, len(x), MAX_SAMPLES))
    return 100 * sum(int((model.predict_proba(x[part]).argmax(1) == right[part]).sum()) for part in parts) / len(x)


class Writer:
    """Turns predictions into lines of one format; with `several` inputs, each line names its input."""

    def __init__(
        self, form: Format, model: Model, top: int, several: bool, unknown: bool = False, sets: bool = False
    ) -> None:
        self.form, self.several, self.unknown, self.sets = form, several, unknown, sets
        self.top = min(top, len(model.classes))
        self._label_width = min(WIDEST, max(len(printable(label)) for label in model.classes))
        if unknown:
            self._label_width = max(self._label_width, len(UNKNOWN))

    def heading(self) -> str:
        if self.form != "csv":
            return ""
        numbers = ["", *(f"_{number}" for number in range(2, self.top + 1))]
        names = [f"{word}{n}" for n in numbers for word in ("label", "probability")]
        more = ["typicality"] * self.unknown + ["set"] * self.sets
        return _csv_lines([["input", "row", *names, *more]])

    def lines(self, several: Sequence[Prediction]) -> str:
        if self.form == "csv":
            return _csv_lines([_csv_row(prediction, self.top) for prediction in several])
        if self.form == "jsonl":
            return "".join(json.dumps(_plain(prediction)) + "\n" for prediction in several)
        lines = []
        names = [_name(prediction.input, prediction.row, self.several) for prediction in several]
        width, label_width = max(map(len, names), default=0), self._label_width
        for name, prediction in zip(names, several, strict=True):
            found = [f"{printable(label):{label_width}}  {100 * share:6.2f} %" for label, share in prediction.classes]
            if prediction.typicality is not None:
                found = found or [f"{UNKNOWN:{label_width}}  {'':8}"]
                found.append(f"typicality {prediction.typicality:.4f}")
            if prediction.classes_of_set is not None:
                found.append("set {" + ", ".join(map(printable, prediction.classes_of_set)) + "}")
            lines.append("  ".join([f"{name:{width}}", *found]) + "\n")
        return "".join(lines)


def _name(name: str, row: int | None, several: bool) -> str:
    if row is None:
        return printable(name)
    return f"{printable(name)}[{row}]" if several else str(row)


def _csv_row(prediction: Prediction, top: int) -> list[object]:
    row = "" if prediction.row is None else prediction.row
    values = [value for label, share in prediction.classes for value in (printable(label), f"{share:.6g}")]
    if prediction.typicality is not None:
        values = values or [UNKNOWN, *[""] * (2 * top - 1)]
        values.append(f"{prediction.typicality:.6g}")
    if prediction.classes_of_set is not None:
        values.append(json.dumps([printable(label) for label in prediction.classes_of_set]))
    return [printable(prediction.input), row, *values]


def _csv_lines(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _plain(prediction: Prediction) -> dict[str, Any]:
    top = [{"label": label, "probability": float(f"{share:.6g}")} for label, share in prediction.classes]
    plain: dict[str, Any] = {"input": prediction.input, "row": prediction.row}
    if prediction.typicality is not None:
        plain |= {"unknown": not top, "typicality": float(f"{prediction.typicality:.6g}")}
    plain |= top[0] if top else {"label": UNKNOWN, "probability": None}
    if prediction.classes_of_set is not None:
        plain["set"] = list(prediction.classes_of_set)
    return {**plain, "top": top} if len(top) > 1 else plain
