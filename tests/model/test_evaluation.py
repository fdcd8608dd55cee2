"""An evaluation agrees with the model's own predictions, however the data is cut into chunks."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix

from spacenet.data import arrays
from spacenet.errors import DataError
from spacenet.model.evaluation import evaluate_model
from spacenet.model.model import Model
from tests.model.support import SHAPE, blobs, model

X, Y = blobs([0, 1, 2, 3], per_class=30)
X = X + np.random.default_rng(0).normal(size=X.shape).astype(np.float32) * 2


@pytest.fixture(scope="module")
def learned() -> Model:
    return model([0, 1], [2, 3])


def test_it_agrees_with_the_predictions(learned: Model) -> None:
    found = evaluate_model(learned, X, Y)
    predicted = np.array(learned.predict(X))
    assert 0 < found.accuracy < 100
    assert found.accuracy == pytest.approx(100 * accuracy_score(Y, predicted))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(Y, predicted))
    assert [task.accuracy for task in found.tasks] == pytest.approx(
        [100 * (predicted[rows] == Y[rows]).mean() for rows in (Y < 2, Y >= 2)]
    )
    probabilities = learned.predict_proba(X)
    own = [100 * (probabilities[Y < 2, :2].argmax(1) == Y[Y < 2]).mean()]
    own.append(100 * (probabilities[Y >= 2, 2:].argmax(1) + 2 == Y[Y >= 2]).mean())
    assert [task.task_il_accuracy for task in found.tasks] == pytest.approx(own)
    assert found.calibration.mean_confidence == pytest.approx(100 * probabilities.max(1).mean())
    assert found.old_new is not None
    assert (found.old_new.old_accuracy, found.old_new.new_accuracy) == tuple(task.accuracy for task in found.tasks)
    assert found.labels == [["0", "1"], ["2", "3"]]


def test_chunks_do_not_matter(learned: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate_model(learned, X, Y).to_plain()
    monkeypatch.setattr(arrays, "MAX_SAMPLES", 7)
    parts = evaluate_model(learned, X, Y).to_plain()
    assert parts.pop("calibration")["ece"] == pytest.approx(whole.pop("calibration")["ece"])
    ours, theirs = ([(each["true"], each["where"]) for each in found.pop("mistakes")] for found in (parts, whole))
    assert ours == theirs
    assert parts == whole


def test_mistakes_are_named_by_row(learned: Model) -> None:
    found = evaluate_model(learned, X, Y)
    predicted, confidence = learned.predict(X), learned.predict_proba(X).max(1)
    assert found.mistakes.each
    for each in found.mistakes.each:
        row = int(each.where.removeprefix("row "))
        assert (each.true, each.predicted) == (str(Y[row]), str(predicted[row]))
        assert each.true != each.predicted
        assert each.confidence == pytest.approx(100 * confidence[row])
    assert found.mistakes.inputs is not None
    assert found.mistakes.inputs.shape == (len(found.mistakes.each), *SHAPE)


def test_unknown_labels_are_counted_and_left_out(learned: Model) -> None:
    y = np.where(Y == 3, 7, Y)
    found = evaluate_model(learned, X, y)
    assert found.unknown == {"7": 30}
    assert found.samples == 90
    assert found.accuracy == pytest.approx(evaluate_model(learned, X[Y < 3], Y[Y < 3]).accuracy)
    assert found.classes[3].recall is None


def test_labels_of_another_type_are_compared_as_text(learned: Model) -> None:
    expected = evaluate_model(learned, X, Y).accuracy
    assert evaluate_model(learned, X, Y.astype(str)).accuracy == expected
    assert evaluate_model(learned, X, Y.astype(float)).accuracy == expected


def test_no_known_label_is_an_error(learned: Model) -> None:
    with pytest.raises(DataError, match=r"knows none of the 1 label \(cat\); its classes are 0, 1, 2, 3"):
        evaluate_model(learned, X[:3], np.array(["cat"] * 3))
    with pytest.raises(DataError, match="there are no samples"):
        evaluate_model(learned, X[:0], Y[:0])
    with pytest.raises(DataError, match="120 samples and 119 labels"):
        evaluate_model(learned, X, Y[1:])


def test_a_class_that_came_again_counts_in_both_tasks() -> None:
    found = evaluate_model(model([0, 1], [1, 2], known_classes="task"), X[Y < 3], Y[Y < 3])
    assert [(task.classes, task.samples) for task in found.tasks] == [(("0", "1"), 60), (("1", "2"), 60)]
    assert [each.task for each in found.classes] == [1, 1, 2]
    assert found.old_new is not None
    assert found.old_new.new_samples == 30


def test_one_task_has_no_old_classes() -> None:
    assert evaluate_model(model([0, 1]), X[Y < 2], Y[Y < 2]).old_new is None


def test_json_has_everything(learned: Model) -> None:
    plain = json.loads(json.dumps(evaluate_model(learned, X, Y).to_plain()))
    assert list(plain) == [
        *("accuracy", "samples", "unknown", "tasks", "old_new", "classes", "calibration", "confusion", "mistakes")
    ]
    assert len(plain["calibration"]["bins"]) == 15
    assert sum(map(sum, plain["confusion"]["counts"])) == 120
