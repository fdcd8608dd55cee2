"""The labels of a model's outputs, task by task: finding one, giving it another name, giving several the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spacenet.data.checks import check_labels, check_same_type
from spacenet.errors import SettingsError
from spacenet.registry import unknown

Label = bool | int | float | str
Tasks = list[tuple[Label, ...]]


def same(one: Label, other: Label) -> bool:
    """Whether two labels name the same class: 1, 1.0 and True are different ones."""
    return type(one) is type(other) and one == other


def distinct(labels: Sequence[Label]) -> list[Label]:
    """Each label once, in the order in which they come."""
    return [label for _, label in dict.fromkeys((type(label), label) for label in labels)]


def check_label(label: Any) -> Label:
    """A label in the type in which it is kept; `DataError` if it cannot be one."""
    array = np.empty(1, object)
    array[0] = label
    return check_labels(array, "the label").tolist()[0]  # type: ignore[no-any-return]


def find_class(label: Any, classes: Sequence[Label]) -> Label:
    """The class with this label. Raises `SettingsError` with the nearest one if there is none."""
    wanted = check_label(label)
    if not any(same(wanted, each) for each in classes):
        check_same_type([wanted], classes)
        raise unknown("class", str(wanted), map(str, classes))
    return wanted


def read_class(text: str, classes: Sequence[Label]) -> Label:
    """The class that a text names, whatever the type of its label."""
    return find_class(next((label for label in classes if str(label) == text), text), classes)


def read_new_label(text: str, like: Label) -> Label:
    """A label that a text names: of the type of another one if it reads like that, otherwise a text."""
    if isinstance(like, bool):
        return {"True": True, "False": False}.get(text, text)
    if isinstance(like, str):
        return text
    try:
        return type(like)(text)
    except ValueError:
        return text


def rename(tasks: Tasks, old: Any, new: Any) -> Tasks:
    """The same outputs with another name for a class."""
    classes = distinct([label for task in tasks for label in task])
    before, after = find_class(old, classes), check_label(new)
    others = [label for label in classes if not same(label, before)]
    if any(same(after, label) for label in others):
        raise SettingsError(
            f"there is a class {after!r} already.",
            cli=f"To make one class of both: spacenet edit MODEL merge {before} --into {after}",
            python=f"To make one class of both: merge([{before!r}], into={after!r})",
        )
    check_same_type([after], others)
    return _replace(tasks, [before], after)


def merge(tasks: Tasks, labels: Sequence[Any], into: Any) -> Tasks:
    """The same outputs with one name for several classes. Outputs of one task may have the same name then."""
    classes = distinct([label for task in tasks for label in task])
    merged, after = [find_class(label, classes) for label in labels], check_label(into)
    together = distinct([*merged, *(label for label in classes if same(label, after))])
    if len(together) < 2:
        raise SettingsError(
            "there is nothing to merge: two classes are needed.",
            cli="To give one class another name: spacenet edit MODEL rename OLD NEW",
            python="To give one class another name: rename(old, new)",
        )
    check_same_type([after], [label for label in classes if not any(same(label, each) for each in together)])
    return _replace(tasks, together, after)


def _replace(tasks: Tasks, labels: Sequence[Label], new: Label) -> Tasks:
    return [tuple(new if any(same(label, each) for each in labels) else label for label in task) for task in tasks]
