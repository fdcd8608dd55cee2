import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spacenet
from spacenet import SpaceNetClassifier
from spacenet.config.presets import preset
from spacenet.data.fetch import DATA_VARIABLE
from spacenet.data.streams import StreamConfig, build_stream
from spacenet.errors import DataError, SettingsError, SpaceFull
from spacenet.experiments.run import MODEL, Run, create_folder
from spacenet.model.estimator import epochs_for
from spacenet.model.file import to_bytes
from tests.model.support import blobs

SMALL: dict[str, Any] = {"hidden": (40, 40), "epochs": 3}
CHECKS = """
import json
from sklearn.utils.estimator_checks import check_estimator
from spacenet import SpaceNetClassifier
done = check_estimator(SpaceNetClassifier(), on_fail=None, on_skip=None)
print(json.dumps([[each["check_name"], each["status"], str(each["exception"])] for each in done]))
"""


def test_scikit_learns_own_checks_pass_in_full() -> None:
    """In a process of its own: one of them runs only if this variable is set before scipy is imported."""
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    results = json.loads(done.stdout)
    assert len(results) > 50
    assert [each for each in results if each[1] != "passed"] == []


@pytest.mark.parametrize(("stream", "method"), [("split-digits", "spacenet-density"), ("split-mnist", "spacenet")])
def test_task_by_task_it_reaches_to_the_bit_what_a_run_reaches(stream: str, method: str, tmp_path: Path) -> None:
    if stream == "split-mnist" and not os.environ.get(DATA_VARIABLE):
        pytest.skip("needs MNIST in SPACENET_DATA")
    config = preset(stream, method)
    create_folder(config, tmp_path / "run")
    metrics = Run(tmp_path / "run").execute()
    tasks = build_stream(stream, StreamConfig())
    data, options, training = tasks.dataset, config.options, config.training
    classifier = SpaceNetClassifier(
        method=method,
        hidden=config.net.hidden,
        selected=options.selected,  # type: ignore[attr-defined]
        reserved=options.reserved,  # type: ignore[attr-defined]
        connections=options.connections,  # type: ignore[attr-defined]
        phantom_classes=options.phantom_classes,  # type: ignore[attr-defined]
        rewire_fraction=options.rewire_fraction,  # type: ignore[attr-defined]
        unused_first=options.unused_first,  # type: ignore[attr-defined]
        epochs=training.epochs,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        scale=data.scale,
        mean=data.mean,
        std=data.std,
        centering=config.data.centering,
    )
    accuracies = []
    for task in tasks:
        rows = np.isin(data.y_train, np.array(task.labels))
        classifier.partial_fit(data.x_train[rows], data.y_train[rows])
    for task in tasks:
        rows = np.isin(data.y_test, np.array(task.labels))
        accuracies.append(100 * classifier.score(data.x_test[rows], data.y_test[rows]))
    assert np.mean(accuracies) == pytest.approx(metrics["acc"], abs=1e-9)
    ours, theirs = classifier.model_, spacenet.load(tmp_path / "run" / MODEL).model_
    x = data.x_test[:50]
    np.testing.assert_array_equal(ours.predict_proba(x), theirs.predict_proba(x))


def test_it_learns_unseen_data_with_its_defaults() -> None:
    x, y = load_digits(return_X_y=True)
    classifier = SpaceNetClassifier()
    for first in range(0, 10, 2):
        rows = (y == first) | (y == first + 1)
        classifier.partial_fit(x[rows][:240], y[rows][:240])
    assert classifier.classes_.tolist() == list(range(10))
    assert classifier.score(x, y) > 0.95
    assert classifier.predict_proba(x[:7]).sum(1) == pytest.approx(np.ones(7))
    assert 0 < classifier.space_left_ < 10


def test_labels_of_any_type_may_come_at_any_time_and_again() -> None:
    classifier = SpaceNetClassifier(**SMALL)
    for labels in (["cat", "dog"], ["dog", "eel"], ["fox"]):
        classifier.partial_fit(*blobs(labels))
    assert classifier.classes_.tolist() == ["cat", "dog", "eel", "fox"]
    assert classifier.tasks_ == [("cat", "dog"), ("dog", "eel"), ("fox",)]
    x = blobs(["cat", "fox"])[0]
    assert classifier.predict_proba(x).shape == (40, 4)
    assert set(classifier.predict(x)) <= {"cat", "dog", "eel", "fox"}
    mixed = classifier.partial_fit(*blobs([1, 2]))
    assert mixed.classes_.tolist() == ["cat", "dog", "eel", "fox", 1, 2]


def test_fit_forgets() -> None:
    classifier = SpaceNetClassifier(**SMALL).fit(*blobs([0, 1])).fit(*blobs([5, 6, 7], shape=(3,)))
    assert classifier.classes_.tolist() == [5, 6, 7]
    assert classifier.n_features_in_ == 3


def test_images_take_a_convolutional_net() -> None:
    x, y = blobs([0, 1], 6, (3, 8, 8))
    pixels = np.clip(40 * x + 128, 0, 255).astype(np.uint8)
    classifier = SpaceNetClassifier(hidden=(8, 8, 10), epochs=2, batch_size=4).fit(pixels, y)
    assert classifier.model_.config.net.net == "small-cnn"
    assert classifier.model_.normalization_spec.scale == 1 / 255
    assert classifier.predict(pixels).shape == (12,)
    with pytest.raises(DataError, match="shape"):
        classifier.predict(pixels[:, :, :7])


def test_the_space_runs_out_with_an_error_or_grows() -> None:
    small: dict[str, Any] = {"hidden": (12, 12), "expected_tasks": 1, "epochs": 1}
    full = SpaceNetClassifier(**small).partial_fit(*blobs([0, 1]))
    assert full.space_left_ == 0
    with pytest.raises(SpaceFull, match="is full"):
        full.partial_fit(*blobs([2, 3]))
    assert full.classes_.tolist() == [0, 1]
    growing = SpaceNetClassifier(when_full="expand", **small).partial_fit(*blobs([0, 1])).partial_fit(*blobs([2, 3]))
    assert growing.classes_.tolist() == [0, 1, 2, 3]


def test_as_many_tasks_fit_as_are_expected() -> None:
    for tasks in (1, 3, 10):
        classifier = SpaceNetClassifier(expected_tasks=tasks, epochs=1).partial_fit(*blobs([0, 1]))
        assert classifier.space_left_ >= tasks - 1


def test_save_and_load_go_on_to_the_bit(tmp_path: Path) -> None:
    first = SpaceNetClassifier(**SMALL, random_state=3).partial_fit(*blobs(["a", "b"]))
    first.save(tmp_path / "model.safetensors")
    second = spacenet.load(tmp_path / "model.safetensors")
    for each in (first, second):
        each.partial_fit(*blobs(["c", "d"]))
    assert to_bytes(first.model_) == to_bytes(second.model_)
    assert second.get_params()["random_state"] == 3
    assert second.get_params()["hidden"] == (40, 40)


def test_its_method_and_the_methods_own_settings_come_back(tmp_path: Path) -> None:
    own: dict[str, Any] = {"representation": "inputs", "components": 1, "directions": 4, "shrinkage": 0.5}
    own |= {"sharpness": 0.3, "network_weight": 0.1}
    first = SpaceNetClassifier(**SMALL, method="spacenet-density", **own).partial_fit(*blobs(["a", "b"]))
    first.save(tmp_path / "model.safetensors")
    second = spacenet.load(tmp_path / "model.safetensors")
    third = pickle.loads(pickle.dumps(first))
    found = second.get_params()
    assert found["method"] == "spacenet-density"
    assert {name: found[name] for name in own} == own
    assert first.model_.method.extra_state()["density/classes/variance"].shape == (2, 1, 4)
    for each in (first, second, third):
        each.partial_fit(*blobs(["c", "d"]))
    assert to_bytes(first.model_) == to_bytes(second.model_) == to_bytes(third.model_)


def test_a_method_without_rewiring() -> None:
    classifier = SpaceNetClassifier(**SMALL, method="static-sparse").fit(*blobs([0, 1]))
    assert classifier.model_.config.method == "static-sparse"


def test_copies_pickles_and_clones() -> None:
    classifier = SpaceNetClassifier(**SMALL).fit(*blobs([0, 1]))
    x = blobs([0, 1])[0]
    for copied in (copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
        np.testing.assert_array_equal(copied.predict_proba(x), classifier.predict_proba(x))
    assert not hasattr(clone(classifier), "model_")
    assert clone(classifier).get_params() == classifier.get_params()


def test_in_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), SpaceNetClassifier(hidden=(40, 40))).fit(*blobs([0, 1]))
    assert pipeline.score(*blobs([0, 1])) == 1.0


def test_bad_settings_are_named() -> None:
    x, y = blobs([0, 1])
    bad: dict[str, Any]
    for bad, message in (
        ({"when_full": "panic"}, "when_full: 'panic'"),
        ({"expected_tasks": 0}, "expected-tasks: 0"),
        ({"net": "magic"}, "no 'magic'"),
        ({"epochs": 0}, "epochs: 0"),
        ({"method": "magic"}, "no 'magic'"),
        ({"method": "naive"}, "naive keeps no space; choose"),
        ({"method": "spacenet", "components": 3}, "components: spacenet has no such setting"),
        ({"components": 0}, "components: 0"),
        ({"representation": "edges"}, "no images that show edges"),
        ({"representation": "magic"}, "representation"),
        ({"rewire_fraction": 2.0}, "rewire-fraction: 2.0"),
    ):
        with pytest.raises(SettingsError, match=message):
            SpaceNetClassifier(**bad).fit(x, y)


def test_before_it_has_learned_it_says_so() -> None:
    with pytest.raises(AttributeError, match="learned nothing yet"):
        _ = SpaceNetClassifier().space_left_
    assert not hasattr(SpaceNetClassifier(), "classes_")


def test_a_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    SpaceNetClassifier(**SMALL, verbose=True).fit(*blobs([0, 1]))
    assert capsys.readouterr().out.count("task 1, epoch") == 3


def test_few_samples_are_seen_more_often() -> None:
    assert epochs_for(100_000, 32) == 4
    assert epochs_for(2_000, 32) == 9
    assert epochs_for(10, 32) == 100
