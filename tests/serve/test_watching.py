"""Unknown inputs in predictions, and what is counted of them while a model is served."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.model.file import save_model
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.predictions import Measured
from spacenet.model.watching import load_watch, watch_path
from spacenet.serve import watcher
from spacenet.serve.store import Store
from spacenet.serve.watcher import Watcher
from tests.model.support import blobs, density_model
from tests.model.support import model as plain_model
from tests.serve.support import NPY, Service, npy, services

X = np.concatenate([blobs([0, "cat"])[0], np.full((3, 8), 1e20, np.float32)])
LABELS: list[Label] = [0, 1, "cat", "dog"]


@pytest.fixture(scope="module")
def learned() -> Model:
    return density_model("inputs")


@pytest.fixture
def file(tmp_path: Path, learned: Model) -> Path:
    save_model(tmp_path / "model.safetensors", learned)
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, learned: Model) -> Iterator[Service]:
    """Tells unknown inputs only where a request wants it."""
    folder = tmp_path_factory.mktemp("asked")
    save_model(folder / "tells.safetensors", learned)
    save_model(folder / "plain.safetensors", plain_model())
    files = {name: folder / f"{name}.safetensors" for name in ("tells", "plain")}
    with services(files, max_bytes=2**20) as it:
        yield it


def test_unknown_inputs_have_no_label(asked: Service, learned: Model) -> None:
    typicality = learned.typicality(X)
    answer = asked.post("/predict", json={"inputs": X.tolist(), "unknown": 0.3, "top": 2}).json()["predictions"]
    np.testing.assert_allclose([each["typicality"] for each in answer], typicality)
    assert [each["unknown"] for each in answer] == (typicality < 0.3).tolist()
    assert {each["unknown"] for each in answer} == {True, False}
    for each in answer:
        nothing = (each["label"], each["probability"], each["top"]) == (None, None, [])
        assert nothing == each["unknown"]
        assert each["unknown"] or len(each["top"]) == 2
    assert answer == asked.post("/predict?unknown=0.3&top=2", content=npy(X), headers=NPY).json()["predictions"]


def test_without_the_question_there_is_no_answer(asked: Service) -> None:
    answer = asked.post("/predict", json={"inputs": X[:2].tolist()}).json()["predictions"]
    assert all(set(each) == {"label", "probability", "top"} for each in answer)
    assert asked.ask("GET", "/watch").status_code == 404


def test_sets(asked: Service, learned: Model) -> None:
    answer = asked.post("/predict?coverage=0.9", content=npy(X[:-3]), headers=NPY).json()["predictions"]
    expected = [[LABELS[number] for number in np.flatnonzero(row)] for row in learned.predict_set(X[:-3], 0.9)]
    assert [each["set"] for each in answer] == expected
    assert "unknown" not in answer[0]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/predict?unknown=2", {}, "between 0 and 1"),
        ("/predict?unknown=x", {}, "'x' is not a number"),
        ("/predict?unknown=nan", {}, "between 0 and 1"),
        ("/predict?coverage=0", {}, "between 0 and 1"),
        ("/predict", {"unknown": 0}, "between 0 and 1"),
        ("/predict", {"unknown": "0.1"}, "unknown"),
        ("/predict", {"coverage": 1e400}, "between 0 and 1"),
        ("/models/plain/predict", {"unknown": 0.1}, "cannot tell unknown"),
        ("/models/plain/predict", {"coverage": 0.9}, "cannot tell unknown"),
    ],
)
def test_bad_rates_are_refused(asked: Service, path: str, body: dict[str, Any], words: str) -> None:
    content = json.dumps({"inputs": X[:1].tolist(), **body}).encode()
    answer = asked.post(path, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, words in answer.json()["error"]) == (422, True), answer.text


def test_a_service_that_watches(file: Path, learned: Model, capsys: pytest.CaptureFixture[str]) -> None:
    with services({"model": file}, unknown=0.05, max_bytes=2**20) as it:
        answer = it.post("/predict", json={"inputs": X.tolist()}).json()["predictions"]
        assert [each["unknown"] for each in answer] == (learned.typicality(X) < 0.05).tolist()
        tensor = {"name": "input", "datatype": "FP32", "shape": [40, 8], "data": X[:40].tolist()}
        it.post("/v2/models/model/infer", json={"inputs": [tensor]})
        counted = it.get("/watch")
        assert counted == it.get("/models/model/watch")
        assert counted["samples"] == 83
        assert counted["unknown"] == sum(each["unknown"] for each in answer) + (learned.typicality(X[:40]) < 0.05).sum()
        assert counted["wanted_rate"] == 5.0
        assert [each["label"] for each in counted["classes"]] == [str(label) for label in LABELS]
        assert not watch_path(file).exists(), "not for every request"
    kept = load_watch(file)
    assert kept is not None
    assert kept.summary().samples == 83
    assert main(["inspect", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["watch"]["samples"] == 83
    with services({"model": file}, unknown=0.05) as it:
        assert it.get("/watch")["samples"] == 83, "it goes on"
    with services({"model": file}, unknown=0.1) as it:
        assert it.get("/watch")["samples"] == 0, "another rate counts otherwise"


def measured(count: int = 3, typicality: float = 0.5) -> Measured:
    return Measured(np.eye(4)[np.zeros(count, int)], np.full(count, typicality))


class Changing:
    """A store of a model whose classes change."""

    def __init__(self, folder: Path) -> None:
        self.path, self.current, self.classes = folder / "m", self, LABELS


def watcher_of(store: Changing) -> Watcher:
    return Watcher(cast(Store, store), 0.05)


def test_counts_are_written_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "SAVE_SECONDS", -1.0)
    counting = watcher_of(Changing(tmp_path))
    counting.save()
    assert load_watch(tmp_path / "m") is None, "nothing was counted"
    counting.count(LABELS, measured())
    kept = load_watch(tmp_path / "m")
    assert kept is not None
    assert kept.seen.tolist() == [3, 0, 0, 0]


def test_classes_that_come_and_go(tmp_path: Path) -> None:
    store = Changing(tmp_path)
    counting = watcher_of(store)
    counting.count(LABELS, measured())
    store.classes = ["new", *LABELS[:3]]
    counting.count(store.classes, measured(2))
    found = [(each.label, each.samples) for each in counting.summary().classes]
    assert found == [("new", 2), ("0", 3), ("1", 0), ("cat", 0)]
    counting.count(LABELS, measured())  # of the model before, whose request took longer
    assert counting.summary().classes[0].label == "new"
    assert counting.summary().samples == 8
    store.classes = LABELS[2:]
    counting.close()
    assert "new" not in watch_path(store.path).read_text()


def test_files_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Changing(tmp_path)
    path = watch_path(store.path)
    path.write_text("{")
    counting = watcher_of(store)
    assert "counted anew" in caplog.text
    path.unlink()
    path.mkdir()
    counting.count(LABELS, measured())
    counting.close()
    assert "are not written" in caplog.text
