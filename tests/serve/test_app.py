"""What the service answers, to good requests and to bad ones."""

import io
import json
import re
import struct
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacenet import __version__
from tests.model.support import blobs
from tests.serve.support import NPY, NPZ, Service, npy, npz, service

JSON = {"content-type": "application/json"}
ROW = [0.5] * 8
V2_ENDS = ("", "/ready", "/infer")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("served")) as it:
        yield it


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Would learn; what it is given here is refused before."""
    with service(tmp_path_factory.mktemp("learner"), learns=True) as it:
        yield it
        assert it.learning is not None
        assert it.learning.process is None, "a bad task was begun"


def test_health_and_model(served: Service) -> None:
    health = {"status": "ok", "version": __version__, "tasks": 2, "classes": 4, "learning": None}
    assert served.get("/health") == health
    facts = served.get("/model")
    assert facts.pop("space_left") > 0
    assert facts == {
        "method": "spacenet",
        "input_shape": [8],
        "classes": [0, 1, 2, 3],
        "tasks": [[0, 1], [2, 3]],
        "encoder": None,
        "takes": ["samples of the shape (8,), as JSON or npy"],
        "tells_unknown": False,
    }


def test_predictions_are_the_models(served: Service) -> None:
    x, _ = blobs([0, 1, 2, 3])
    expected = served.store.current.model.predict_proba(x)
    answer = served.post("/predict", json={"inputs": x.tolist(), "top": 4})
    assert answer.status_code == 200
    assert answer.json()["tasks"] == 2
    rows = [{each["label"]: each["probability"] for each in row["top"]} for row in answer.json()["predictions"]]
    np.testing.assert_allclose([[row[label] for label in range(4)] for row in rows], expected)
    best = served.post("/predict", json={"inputs": x.tolist()}).json()["predictions"]
    assert best == [{**row, "top": row["top"][:1]} for row in answer.json()["predictions"]]
    assert all(row["top"] == [{"label": row["label"], "probability": row["probability"]}] for row in best)
    assert [each["label"] for each in best] == expected.argmax(1).tolist()
    assert served.post("/predict", content=npy(x), headers=NPY).json()["predictions"] == best


@pytest.mark.parametrize("top", [2, 99])
def test_the_likeliest_come_first(served: Service, top: int) -> None:
    x, _ = blobs([0, 3])
    rows = served.post("/predict", json={"inputs": x.tolist(), "top": top}).json()["predictions"]
    assert {len(row["top"]) for row in rows} == {min(top, 4)}
    assert all(row["top"] == sorted(row["top"], key=lambda each: -float(each["probability"])) for row in rows)
    assert all(row["label"] == row["top"][0]["label"] for row in rows)
    assert rows == served.post(f"/predict?top={top}", content=npy(x), headers=NPY).json()["predictions"]


def test_many_inputs_are_answered_in_order(tmp_path: Path) -> None:
    x = np.tile(blobs([0, 1, 2, 3])[0], (30, 1))
    with service(tmp_path, max_bytes=2**20) as large:
        rows = large.post("/predict", content=npy(x), headers=NPY).json()["predictions"]
        expected = large.store.current.model.predict_proba(x).argmax(1)
    assert [row["label"] for row in rows] == expected.tolist()


@pytest.mark.parametrize("shape", [(1, 2, 4), (8,)])
def test_inputs_may_be_nested_or_flat(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x, y = blobs([0, 1], shape=(1, 2, 4))
    with service(tmp_path, knows=(x, y)) as it:
        answers = it.post("/predict", json={"inputs": x.reshape(-1, *shape).tolist()}).json()["predictions"]
        assert [each["label"] for each in answers] == y.tolist()
        wrong = it.post("/predict", json={"inputs": [[[1, 2, 3, 4], [1, 2, 3, 4]]]})
        assert (wrong.status_code, "1×2×4" in wrong.json()["error"]) == (422, True)


BAD_JSON: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "EOF"),
    "not JSON": (b"{inputs", 400, "key"),
    "not text": (b'{"inputs": "\xff"}', 400, "Invalid JSON"),
    "too deep": (b'{"inputs": ' + b"[" * 20_000, 400, "recursion"),
    "a list": (b"[]", 422, "object"),
    "no inputs": (b"{}", 422, "inputs"),
    "empty": (b'{"inputs": []}', 422, "empty"),
    "an empty input": (b'{"inputs": [[]]}', 422, "inputs[0]"),
    "a number": (b'{"inputs": [1]}', 422, "inputs[0]"),
    "too short": (json.dumps({"inputs": [ROW, ROW[1:]]}).encode(), 422, "inputs[1]"),
    "too deep nested": (json.dumps({"inputs": [[ROW]]}).encode(), 422, "inputs[0]"),
    "a word": (json.dumps({"inputs": [[*ROW[1:], "1.5"]]}).encode(), 422, "not a number"),
    "null": (json.dumps({"inputs": [[*ROW[1:], None]]}).encode(), 422, "not a number"),
    "NaN": (json.dumps({"inputs": [ROW, [*ROW[1:], float("nan")]]}).encode(), 422, "inputs[1] holds NaN"),
    "infinite": (json.dumps({"inputs": [[*ROW[1:], float("inf")]]}).encode(), 422, "infinite"),
    "beyond 32 bits": (json.dumps({"inputs": [[*ROW[1:], 1e39]]}).encode(), 422, "too large"),
    "beyond 64 bits": (json.dumps({"inputs": [[*ROW[1:], 10**400]]}).encode(), 422, "too large"),
    "beyond sense": (b'{"inputs": [[' + b"9" * 30_000 + b"]]}", 400, "number"),
    "top 0": (json.dumps({"inputs": [ROW], "top": 0}).encode(), 422, "top"),
    "top a word": (json.dumps({"inputs": [ROW], "top": "2"}).encode(), 422, "top"),
    "misspelt": (json.dumps({"inputs": [ROW], "topp": 2}).encode(), 422, "topp"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_refused_with_a_reason(served: Service, name: str) -> None:
    body, status, words = BAD_JSON[name]
    answer = served.post("/predict", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert len(answer.content) < 500


def _lying(shape: str) -> bytes:
    """An .npy file whose header claims something else than is there."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(32)


BAD_NPY = {
    "nothing": b"",
    "noise": bytes(range(256)),
    "objects": npy(np.array([{}] * 8, dtype=object).reshape(1, 8), allow_pickle=True),
    "texts": npy(np.array([["1"] * 8])),
    "complex": npy(np.ones((1, 8), dtype=complex)),
    "wrong shape": npy(np.ones((2, 7))),
    "no axis": npy(np.array(1.0)),
    "empty": npy(np.ones((0, 8))),
    "NaN": npy(np.full((1, 8), np.nan)),
    "too large": npy(np.full((1, 8), 1e300)),
    "cut off": npy(np.ones((2, 8)))[:-1],
    "too long": npy(np.ones((2, 8))) + b"1",
    "terabytes": _lying("(1000000000000, 8)"),
    "negative": _lying("(-1, 8)"),
    "overflow": _lying(f"({2**80}, 8)"),
    "no tuple": _lying("8"),
}


@pytest.mark.parametrize("name", BAD_NPY)
def test_bad_npy_is_refused_with_a_reason(served: Service, name: str) -> None:
    answer = served.post("/predict", content=BAD_NPY[name], headers=NPY)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]


@given(st.binary(max_size=200), st.sampled_from(["/predict", "/learn"]), st.integers(0, 400))
def test_no_bytes_make_it_fail(learner: Service, noise: bytes, path: str, at: int) -> None:
    good, headers = (npy(np.ones((2, 8))), NPY) if path == "/predict" else (npz(x=np.ones((2, 8)), y=[1, 2, 3]), NPZ)
    answer = learner.post(path, content=good[:at] + noise + good[at + len(noise) :], headers=headers)
    assert answer.status_code < 500


@pytest.mark.parametrize(
    ("verb", "path", "request_", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("PUT", "/predict", {}, 405),
        ("POST", "/predict", {"content": b"{}"}, 415),
        ("POST", "/predict", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
        ("POST", "/predict?top=x", {"content": npy(np.ones((1, 8))), "headers": NPY}, 422),
        ("POST", "/predict?top=%C2%B2", {"content": npy(np.ones((1, 8))), "headers": NPY}, 422),
        ("POST", "/learn", {"json": {"inputs": [ROW], "labels": [1]}}, 403),
    ],
)
def test_what_is_not_there_or_not_allowed(
    served: Service, verb: str, path: str, request_: dict[str, Any], status: int
) -> None:
    answer = served.ask(verb, path, **request_)
    assert answer.status_code == status
    assert answer.json()["error"]


def test_too_large_bodies_are_refused_while_they_come(served: Service) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b" " * 4096

    answer = served.post("/predict", content=endless(), headers=JSON)
    assert "content-length" not in answer.request.headers
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "the body is larger than 0.0625 MiB; send less at a time"},
    )
    assert taken < 20
    assert served.post("/predict", content=b" " * (2**16 + 1), headers=JSON).status_code == 413
    assert served.post("/predict", content=b" " * 2**16, headers=JSON).status_code == 400


def test_too_large_answers_are_refused(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.predicting.MAX_PREDICTIONS", 5)
    assert served.post("/predict", json={"inputs": [ROW] * 5}).status_code == 200
    assert served.post("/predict", json={"inputs": [ROW] * 2, "top": 3}).status_code == 413


X = np.ones((2, 8))
BAD_TASKS: dict[str, dict[str, Any]] = {
    "no labels": {"json": {"inputs": [ROW]}},
    "too few labels": {"json": {"inputs": [ROW, ROW], "labels": [1]}},
    "mixed labels": {"json": {"inputs": [ROW, ROW], "labels": [1, "a"]}},
    "true is not 1": {"json": {"inputs": [ROW, ROW], "labels": [1, True]}},
    "labels that are lists": {"json": {"inputs": [ROW, ROW], "labels": [[1], [2]]}},
    "null labels": {"json": {"inputs": [ROW, ROW], "labels": [None, None]}},
    "huge labels": {"json": {"inputs": [ROW, ROW], "labels": [1, 2**70]}},
    "long labels": {"json": {"inputs": [ROW, ROW], "labels": ["a", "b" * 101]}},
    "NaN inputs": {"content": b'{"inputs": [[1,2,3,4,5,6,7,NaN]], "labels": [1]}', "headers": JSON},
    "NaN labels": {"content": npz(x=X, y=[1.0, np.nan]), "headers": NPZ},
    "wrong shape": {"content": npz(x=np.ones((2, 7)), y=[1, 2]), "headers": NPZ},
    "no y": {"content": npz(x=X), "headers": NPZ},
    "y not flat": {"content": npz(x=X, y=[[1], [2]]), "headers": NPZ},
    "y of objects": {"content": npz(x=X, y=np.array([1, None], dtype=object)), "headers": NPZ},
    "y of times": {"content": npz(x=X, y=np.array(["2020", "2021"], dtype="M8[Y]")), "headers": NPZ},
    "y too short": {"content": npz(x=X, y=[1]), "headers": NPZ},
    "y not text": {"content": npz(x=X, y=np.frombuffer(b"\xff" * 8, "<U1")), "headers": NPZ},
    "y half letters": {"content": npz(x=X, y=np.array(["a", "\ud800"])), "headers": NPZ},
    "empty": {"content": npz(x=np.ones((0, 8)), y=np.ones(0, int)), "headers": NPZ},
    "not an archive": {"content": b"PK\x03\x04" + bytes(100), "headers": NPZ},
    "an array": {"content": npy(X), "headers": NPZ},
    "unpacks too large": {"content": npz(x=np.zeros((2**14, 8)), y=np.zeros(2**14)), "headers": NPZ},
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_bad_tasks_are_refused_with_a_reason(learner: Service, name: str) -> None:
    answer = learner.post("/learn", **BAD_TASKS[name])
    assert answer.status_code == (413 if "large" in name else answer.status_code)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]
    assert learner.get("/learn")["state"] == "none"


def test_unusual_packing_is_refused(learner: Service) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy(X))
        archive.writestr("y.npy", npy(np.arange(2)))
    answer = learner.post("/learn", content=stream.getvalue(), headers=NPZ)
    assert (answer.status_code, "unusual" in answer.json()["error"]) == (422, True)


def test_inputs_that_the_network_cannot_bear(tmp_path: Path) -> None:
    x, y = blobs([0, 1])
    with service(tmp_path, knows=(x / 1000, y)) as it:
        answer = it.post("/predict", json={"inputs": [ROW, [3e38] * 8]})
    assert answer.status_code == 422
    assert "row 1 has a value of magnitude 3.0e+38" in answer.json()["error"]


def test_labels_in_any_script_are_answered(tmp_path: Path) -> None:
    with service(tmp_path, knows=(blobs([0, 1])[0], np.repeat(["ä", "猫"], 20))) as it:
        rows = it.post("/predict", json={"inputs": [ROW], "top": 2}).json()["predictions"]
        assert {each["label"] for each in rows[0]["top"]} == {"ä", "猫"} == set(it.get("/model")["classes"])


def test_a_fault_of_ours_shows_no_traceback(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.store.Served.measure", lambda *_: 1 / 0)
    answer = served.post("/predict", json={"inputs": [ROW]})
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert "division" not in answer.text


def test_the_service_describes_itself(served: Service) -> None:
    described = served.get("/openapi.json")
    of_a_model = {"/health", "/model", "/watch", "/predict", "/learn", "/edit", "/jobs", "/jobs/{number}"}
    versions = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
    v2 = {"/v2", "/v2/health/live", "/v2/health/ready"} | {f"{at}{end}" for at in versions for end in V2_ENDS}
    named = {f"/models/{{name}}{path}" for path in of_a_model}
    assert set(described["paths"]) == of_a_model | named | v2 | {"/models", "/metrics"}
    predict = described["paths"]["/predict"]["post"]
    form = predict["requestBody"]["content"]["application/json"]["schema"]
    assert form["properties"]["inputs"]["examples"]
    assert all(part["description"] for part in form["properties"].values())
    assert "application/x-npy" in predict["requestBody"]["content"]
    assert predict["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Predictions")
    assert "202" in described["paths"]["/learn"]["post"]["responses"]


def test_the_page_about_the_service_loads_nothing(served: Service) -> None:
    answer = served.ask("GET", "/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"<script|<link|<img|@import|url\(|//", answer.text)
    for words in ("GET /health", "POST /predict", "POST /learn", "application/x-npy", "openapi.json"):
        assert words in answer.text
    described = served.get("/openapi.json")
    assert all(path in answer.text for path in described["paths"])
    assert "prefers-color-scheme: dark" in answer.text
    references = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(described))
    assert set(references) <= set(described["components"]["schemas"])
    assert json.dumps(described).count('"$ref"') == len(references), "a reference that leads nowhere"
    assert served.ask("GET", "/redoc").status_code == 404
