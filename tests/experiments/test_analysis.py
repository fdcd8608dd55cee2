import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.data.stream import Samples
from spacenet.experiments.analysis import ANALYSIS, Analysis, evenly_spaced, truncation_steps
from spacenet.experiments.run import METRICS, MODEL, Run, load_config
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.model.evaluation import evaluate_model
from spacenet.model.file import load_model
from tests.experiments.support import config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("analysis")
    Run(config(place, preprocessing={"standardize": "all"}), folder=place / "run").execute()
    return place / "run"


def test_the_confusion_is_that_of_the_final_predictions(folder: Path) -> None:
    confusion = Analysis.load(folder).confusion
    assert confusion is not None
    model = load_model(folder / MODEL)
    data = Run(load_config(folder)).stream.dataset
    expected = np.zeros((6, 6), int)
    np.add.at(expected, (data.y_test, model.predict_proba(data.x_test).argmax(1)), 1)
    np.testing.assert_array_equal(confusion.numpy(), expected)
    accuracies = [
        100 * confusion[i : i + 2, i : i + 2].diagonal().sum() / confusion[i : i + 2].sum() for i in (0, 2, 4)
    ]
    assert [float(each) for each in accuracies] == pytest.approx(
        json.loads((folder / METRICS).read_text())["matrix"][-1]
    )


def test_calibration_and_mistakes_are_those_of_the_model(tmp_path: Path) -> None:
    wanted = config(tmp_path, training={"epochs": 1})
    made = Run(wanted, folder=tmp_path / "run").execute().analysis
    data = Run(wanted).stream.dataset
    found = evaluate_model(load_model(tmp_path / "run" / MODEL), data.x_test, data.y_test)
    kept = Analysis.load(tmp_path / "run")
    assert kept.calibration is not None
    assert kept.calibration == made.calibration
    assert kept.calibration.ece == pytest.approx(found.calibration.ece, abs=1e-4)
    assert 0 < len(kept.mistakes.each) <= 24
    assert kept.mistakes.each == made.mistakes.each
    rows = [int(each.where.removeprefix("test sample ")) for each in kept.mistakes.each]
    assert [each.true for each in kept.mistakes.each] == [str(data.y_test[row]) for row in rows]
    assert kept.mistakes.inputs is not None
    np.testing.assert_allclose(kept.mistakes.inputs, data.x_test[rows])
    assert {(each.true, each.predicted) for each in kept.mistakes.each} == {
        (each.true, each.predicted) for each in found.mistakes.each
    }


def test_activations_are_of_samples_of_two_classes_after_the_first_task(folder: Path) -> None:
    analysis = Analysis.load(folder)
    assert set(analysis.labels) == {"0", "1"}
    assert set(analysis.activations) == {"hidden1", "hidden2"}
    ledger = load_model(folder / MODEL).method.ledger
    for name, values in analysis.activations.items():
        assert values.shape == (len(analysis.labels), ledger.size(name))
        assert bool((values >= 0).all())
        assert bool((values > 0).any())
        later = (ledger.state[name] > 0).numpy()
        first = np.zeros(ledger.size(name), bool)
        for link, connections in ledger.connections.items():
            own = connections.owner == 0
            if link.endswith(f"-{name}"):
                first[connections.target[own].numpy()] = True
        assert not values[:, later & ~first].any()


def test_each_epoch_says_how_many_connections_have_moved(folder: Path) -> None:
    tasks = json.loads((folder / METRICS).read_text())["tasks"]
    for task in tasks:
        moved = [epoch["moved"] for epoch in task["epochs"]]
        assert moved[0] > 0
        assert moved == sorted(moved)
        assert moved[-1] == moved[-2] <= 1.0


def test_a_method_without_a_space_has_a_confusion_only(tmp_path: Path) -> None:
    Run(config(tmp_path, "naive"), folder=tmp_path / "run").execute()
    analysis = Analysis.load(tmp_path / "run")
    assert analysis.confusion is not None
    assert (analysis.activations, analysis.labels) == ({}, ())
    assert (analysis.class_memory, analysis.truncated) == (None, ())
    assert Analysis.load(tmp_path).confusion is None


def test_of_methods_that_describe_classes_it_says_what_less_memory_would_give(tmp_path: Path) -> None:
    """Against the model file of the run, whose class statistics are truncated by hand."""
    wanted = config(tmp_path, "spacenet-density", method={"directions": 3})
    metrics = Run(wanted, folder=tmp_path / "run").execute().metrics
    analysis, model = Analysis.load(tmp_path / "run"), load_model(tmp_path / "run" / MODEL)
    assert analysis.class_memory == model.method.class_memory((8,))
    assert analysis.confusion is not None  # what was noted before is still there
    assert set(analysis.activations) == {"hidden1", "hidden2"}
    assert set(analysis.labels) == {"0", "1"}
    assert [(each.directions, each.floats) for each in analysis.truncated] == [(0, 20), (1, 38), (2, 56), (3, 74)]
    assert analysis.truncated[-1].acc == pytest.approx(metrics["acc"])
    data, method = Run(wanted).stream.dataset, model.method
    assert isinstance(method, SpaceNetDensity)
    whole = method.densities.classes
    assert whole is not None
    for each in analysis.truncated:
        method.densities.classes = replace(
            whole,
            variance=whole.variance[..., : each.directions],
            direction=whole.direction[..., : each.directions, :],
        )
        method.invalidate()
        right = model.predict_proba(data.x_test).argmax(1) == data.y_test
        # The data have as many test samples of each class, so ACC is the part of all that is right.
        assert each.acc == pytest.approx(100 * right.mean())


def test_a_run_that_was_killed_before_its_end_notes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, wanted = [tmp_path / "whole", tmp_path / "killed"], config(tmp_path, "gaussian", method={"directions": 3})
    Run(wanted, folder=folders[0]).execute()
    with monkeypatch.context() as patched:
        patched.setattr(Analysis, "record_truncation", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            Run(wanted, folder=folders[1]).execute()
    assert Analysis.load(folders[1]).truncated == ()
    Run(wanted, folder=folders[1]).execute()
    assert len(Analysis.load(folders[0]).truncated) == 4
    assert (folders[0] / ANALYSIS).read_bytes() == (folders[1] / ANALYSIS).read_bytes()


def test_few_steps_lead_from_no_direction_to_all() -> None:
    assert truncation_steps(1) == [0, 1]
    assert truncation_steps(2) == [0, 1, 2]
    assert truncation_steps(19) == [0, 1, 2, 4, 8, 16, 19]
    assert truncation_steps(64) == [0, 1, 2, 4, 8, 16, 32, 64]
    assert truncation_steps(500) == [0, 8, 16, 32, 64, 128, 256, 500]


def test_of_very_many_test_samples_some_of_each_task_are_looked_at() -> None:
    long, short = (Samples(torch.arange(count)[:, None], torch.arange(count)) for count in (19_000, 1_500))
    found = evenly_spaced([long, short])
    assert [len(test) for test in found] == [2_000, 1_500]
    assert found[0].y[[0, 1, 2, -1]].tolist() == [0, 9, 19, 18_990]
    assert torch.equal(found[0].x[:, 0], found[0].y)
    assert torch.equal(found[1].y, short.y)
    assert [len(test) for test in evenly_spaced([long])] == [19_000]
