import json
from pathlib import Path

import numpy as np
import pytest

from spacenet.deploy.file import load_model
from spacenet.experiments.analysis import load_analysis
from spacenet.experiments.run import METRICS, MODEL, Run, create_folder
from tests.experiments.support import config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("analysis")
    create_folder(config(place), place / "run")
    Run(place / "run").execute()
    return place / "run"


def test_the_confusion_is_that_of_the_final_predictions(folder: Path) -> None:
    confusion = load_analysis(folder).confusion
    assert confusion is not None
    run, model = Run(folder), load_model(folder / MODEL)
    data = run.stream.dataset
    expected = np.zeros((6, 6), int)
    np.add.at(expected, (data.y_test, model.probabilities(data.x_test).argmax(1)), 1)
    np.testing.assert_array_equal(confusion.numpy(), expected)
    accuracies = [
        100 * confusion[i : i + 2, i : i + 2].diagonal().sum() / confusion[i : i + 2].sum() for i in (0, 2, 4)
    ]
    assert [float(each) for each in accuracies] == pytest.approx(
        json.loads((folder / METRICS).read_text())["matrix"][-1]
    )


def test_activations_are_of_samples_of_two_classes_after_the_first_task(folder: Path) -> None:
    analysis = load_analysis(folder)
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
    create_folder(config(tmp_path, method="naive"), tmp_path / "run")
    Run(tmp_path / "run").execute()
    analysis = load_analysis(tmp_path / "run")
    assert analysis.confusion is not None
    assert (analysis.activations, analysis.labels) == ({}, ())
    assert load_analysis(tmp_path).confusion is None
