"""Renaming, merging and undoing, in memory."""

from collections.abc import Callable

import numpy as np
import pytest

from spacenet import SpaceNetClassifier
from spacenet.errors import SettingsError
from spacenet.model.evaluation import evaluate_model
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from tests.model.support import blobs, density_model, model

X, Y = blobs([0, 1, 2, 3])


def test_rename_changes_a_name_and_nothing_else() -> None:
    edited, same = model(), model()
    edited.metrics = {"acc": 50.0, "tasks": [{"labels": ["0", "1"]}]}
    edited.rename(np.array([1])[0], "one")
    assert edited.tasks == [(0, "one"), (2, 3)]
    assert edited.metrics == {"acc": 50.0}
    np.testing.assert_array_equal(edited.predict_proba(X), same.predict_proba(X))
    assert edited.predict(X) == ["one" if label == 1 else label for label in same.predict(X)]
    edited.learn(*blobs([4, 5]))
    same.learn(*blobs([4, 5]))
    np.testing.assert_array_equal(edited.scores(X).numpy(), same.scores(X).numpy())
    assert from_bytes(to_bytes(edited)).tasks == [(0, "one"), (2, 3), (4, 5)]


@pytest.mark.parametrize("labels", [[0, 1], [1, 2], [0, 1, 3]])
def test_the_probability_of_a_merged_class_is_the_sum(labels: list[int]) -> None:
    edited, same = density_model("inputs", [0, 1], [2, 3]), density_model("inputs", [0, 1], [2, 3])
    edited.metrics = {"acc": 50.0}
    edited.merge(labels, into="both")
    before, after = same.predict_proba(X), edited.predict_proba(X)
    assert edited.metrics == {}
    both = edited.classes.index("both")
    np.testing.assert_allclose(after[:, both], before[:, labels].sum(1), rtol=1e-12)
    kept = [label for label in range(4) if label not in labels]
    places = [edited.classes.index(label) for label in kept]
    np.testing.assert_array_equal(after[:, places], before[:, kept])
    again = from_bytes(to_bytes(edited))
    np.testing.assert_array_equal(again.predict_proba(X), after)
    again.learn(*blobs([0, 7]))  # a name that is free again
    assert again.classes == [*edited.classes, *([0] if 0 in labels else []), 7]


def test_a_merged_class_counts_once_in_an_evaluation() -> None:
    edited = model()
    edited.merge([0, 1], into=0)
    y = np.where(Y == 1, 0, Y)
    found = evaluate_model(edited, X, y)
    assert [task.classes for task in found.tasks] == [("0",), ("2", "3")]
    assert [task.samples for task in found.tasks] == [40, 40]
    assert found.tasks[0].task_il_accuracy == 100


def test_undo_of_each_change_gives_the_same_bytes() -> None:
    edited = model()
    edited.metrics = {"acc": 50.0}
    before, answers = to_bytes(edited), edited.predict_proba(X)
    changes: list[Callable[[], None]] = [
        lambda: edited.learn(*blobs([4, 5])),
        lambda: edited.rename(1, "one"),
        lambda: edited.merge([0, 3], into=3),
    ]
    for change in changes:
        change()
        assert to_bytes(edited) != before
        edited.undo()
        assert to_bytes(edited) == before
        np.testing.assert_array_equal(edited.predict_proba(X), answers)
        with pytest.raises(SettingsError, match="nothing to undo"):
            edited.undo()
    edited.learn(*blobs([4, 5]))
    edited.undo()
    edited.learn(*blobs([4, 5]))
    assert to_bytes(edited) == to_bytes(_with_metrics(model([0, 1], [2, 3], [4, 5])))


def _with_metrics(made: Model) -> Model:
    made.metrics = {"acc": 50.0}
    return made


def test_nothing_is_kept_before_the_first_task() -> None:
    with pytest.raises(SettingsError, match="nothing to undo"):
        model([0, 1]).undo()


def test_a_failed_change_leaves_what_can_be_undone() -> None:
    edited = model()
    edited.rename(1, "one")
    with pytest.raises(SettingsError):
        edited.rename("two", "three")
    edited.undo()
    assert edited.tasks == [(0, 1), (2, 3)]


def test_the_estimator_follows() -> None:
    classifier = SpaceNetClassifier(hidden=(30, 30), epochs=2)
    classifier.partial_fit(X[Y < 2], Y[Y < 2]).partial_fit(X[Y > 1], Y[Y > 1])
    assert classifier.rename(0, 7).merge([1, 2], into=2) is classifier
    assert classifier.tasks_ == [(7, 2), (2, 3)]
    np.testing.assert_array_equal(classifier.classes_, [7, 2, 3])
    assert classifier.undo().tasks_ == [(7, 1), (2, 3)]
    classifier.set_params(epochs=1).partial_fit(*blobs([8, 9]))
    assert classifier.model_.config.training.epochs == 1
    assert classifier.undo().model_.config.training.epochs == 2
    classifier.partial_fit(*blobs([8, 9]))  # the parameter is still the changed one
    assert classifier.model_.config.training.epochs == 1
