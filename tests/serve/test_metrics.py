"""Figures of the service, read as Prometheus reads them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from spacenet.model.file import save_model
from spacenet.model.predictions import Measured
from spacenet.serve import metrics as figures
from spacenet.serve.metrics import Metrics
from tests.model.support import blobs, density_model, model
from tests.serve.live import live, read_all
from tests.serve.support import Service, ended, service, services

X = blobs([0, "cat"])[0]
Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Service]:
    for name, each in (("tells", density_model("inputs")), ("plain", model())):
        save_model(tmp_path / f"{name}.safetensors", each)
    files = {name: tmp_path / f"{name}.safetensors" for name in ("tells", "plain")}
    with services(files, unknown=0.05, max_bytes=2**20) as it:
        yield it


def read(it: Service) -> Figures:
    answer = it.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Figures, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


def test_requests_and_predictions_are_counted(served: Service) -> None:
    many = np.concatenate([X, np.full((3, 8), 1e20, np.float32)])
    found = served.post("/predict", json={"inputs": many.tolist()}).json()["predictions"]
    served.post("/models/plain/predict", json={"inputs": X[:2].tolist()})
    served.post("/predict", json={"inputs": []})
    served.ask("GET", "/models/nothing/predict/at/all")
    served.ask("BREW", "/health")
    now = read(served)
    route = {"method": "POST", "endpoint": "/predict"}
    assert value(now, "spacenet_requests_total", **route, status="200") == 1
    assert value(now, "spacenet_requests_total", **route, status="422") == 1
    assert value(now, "spacenet_requests_total", method="POST", endpoint="/models/{name}/predict", status="200") == 1
    assert value(now, "spacenet_requests_total", method="GET", endpoint="(unknown)", status="404") == 1
    assert "(other)" in {dict(labels).get("method") for _, labels in now}
    assert value(now, "spacenet_request_seconds_count", **route) == 2
    assert value(now, "spacenet_request_samples_sum", model="tells") == 43
    assert value(now, "spacenet_request_samples_bucket", model="plain", le="2.0") == 1
    cats = sum(each["label"] == "cat" for each in found)
    assert value(now, "spacenet_predictions_total", model="tells", label="cat") == cats > 0
    unknown = sum(each["unknown"] for each in found)
    assert value(now, "spacenet_unknown_predictions_total", model="tells") == unknown >= 3
    assert value(now, "spacenet_class_drifted", model="tells", label="cat") in (0, 1)
    assert 0 < value(now, "spacenet_class_typicality", model="tells", label="cat") < 1
    assert 0 <= value(now, "spacenet_unknown_ratio", model="tells") < 1
    assert ("spacenet_unknown_ratio", (("model", "plain"),)) not in now


def test_the_state_of_models(served: Service) -> None:
    now = read(served)
    for name in ("tells", "plain"):
        assert value(now, "spacenet_tasks", model=name) == 2
        assert value(now, "spacenet_classes", model=name) == 4
        assert value(now, "spacenet_space_left", model=name) == served.get(f"/models/{name}/model")["space_left"]
        assert value(now, "spacenet_jobs", model=name, state="running") == 0
    assert value(now, "spacenet_body_bytes") == 0
    assert value(now, "spacenet_requests_in_progress") == 1, "this one"


def test_models_that_divide_no_network_have_no_space(served: Service) -> None:
    served.models["plain"].store.current.description["space_left"] = None
    now = read(served)
    assert ("spacenet_space_left", (("model", "plain"),)) not in now
    assert ("spacenet_space_left", (("model", "tells"),)) in now


def test_many_classes_are_counted_together(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MAX_LABELS", 2)
    counting = Metrics(served.models)
    for first in (0, 3, 0):
        classes = [str(number) for number in range(first, first + 3)]
        counting.note_predictions("plain", classes, Measured(np.eye(3)), None)
    samples = [each for family in counting.predictions.collect() for each in family.samples]
    found = {each.labels["label"]: each.value for each in samples if each.name.endswith("_total")}
    assert found == {"0": 2, "1": 2, "other": 5}


def test_a_class_that_is_removed_is_not_shown_any_more(tmp_path: Path) -> None:
    save_model(tmp_path / "model.safetensors", model([0, 1], ["cat", "secret"]))
    with service(tmp_path, learns=True) as it:
        x = blobs([0, 1, "cat", "secret"])[0]
        it.post("/predict", json={"inputs": x.tolist()})
        label = {"model": "model", "label": "secret"}
        assert value(read(it), "spacenet_predictions_total", **label) > 0
        job = it.post("/edit", json={"action": "forget", "label": "secret"}).json()
        assert ended(it, job["number"])["state"] == "done"
        assert "secret" not in it.ask("GET", "/metrics").text
        it.post("/predict", json={"inputs": x.tolist()})
        assert value(read(it), "spacenet_predictions_total", model="model", label="cat") > 0


def test_two_services_count_for_themselves(tmp_path: Path, served: Service) -> None:
    save_model(tmp_path / "other.safetensors", model())
    with services({"other": tmp_path / "other.safetensors"}) as other:
        served.get("/health")
        requests = [key for key in read(other) if key[0] == "spacenet_requests_total"]
        assert requests == []


def test_connections_of_a_server(tmp_path: Path) -> None:
    asked = "GET /metrics HTTP/1.1\r\nHost: localhost:8000\r\nConnection: close\r\n\r\n"
    with live(tmp_path) as running, running.connect(asked) as connection:
        assert b"spacenet_open_connections 1.0" in read_all(connection)
