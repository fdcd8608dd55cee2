"""The Open Inference Protocol: what it answers, to good requests and to bad ones."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet.model.file import save_model
from spacenet.model.model import Model
from spacenet.serve import v2
from tests.model.support import blobs, density_model, model
from tests.serve.support import Service, services

X = blobs([0, 1])[0]
AT = "/v2/models/plain"
TELLS = "/v2/models/tells"


@pytest.fixture(scope="module")
def learned() -> dict[str, Model]:
    return {"plain": model(), "tells": density_model("inputs")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, learned: dict[str, Model]) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("v2")
    for name, each in learned.items():
        save_model(folder / f"{name}.safetensors", each)
    with services({name: folder / f"{name}.safetensors" for name in learned}, max_bytes=2**20) as it:
        yield it


def tensor(x: np.ndarray = X, datatype: str = "FP32", **changed: Any) -> dict[str, Any]:
    return {"name": "input", "shape": list(x.shape), "datatype": datatype, "data": x.ravel().tolist(), **changed}


def infer(it: Service, given: dict[str, Any], at: str = AT, **more: Any) -> Any:
    return it.post(f"{at}/infer", json={"inputs": [given], **more})


def outputs(answer: Any) -> dict[str, np.ndarray]:
    assert answer.status_code == 200, answer.text
    return {each["name"]: np.array(each["data"]).reshape(each["shape"]) for each in answer.json()["outputs"]}


def send_binary(
    it: Service, head: dict[str, Any], content: bytes, length: int | str | None = None, at: str = AT
) -> Any:
    text = json.dumps(head).encode()
    headers = {"Inference-Header-Content-Length": str(len(text) if length is None else length)}
    return it.post(f"{at}/infer", content=text + content, headers=headers)


def test_the_server_and_its_health(served: Service) -> None:
    assert served.get("/v2")["name"] == "spacenet"
    assert served.get("/v2")["extensions"] == ["binary_tensor_data"]
    assert served.get("/v2/health/live") == {"live": True}
    assert served.get("/v2/health/ready") == {"ready": True}
    assert served.get(f"{AT}/ready") == {"name": "plain", "ready": True}
    assert served.get(f"{AT}/versions/2/ready")["ready"]


def test_a_model_without_classes_is_not_ready(served: Service) -> None:
    hosted = served.models["plain"]
    object.__setattr__(hosted.store.current, "classes", [])
    try:
        assert served.ask("GET", "/v2/health/ready").status_code == 503
        assert served.ask("GET", f"{AT}/ready").status_code == 503
        assert served.ask("GET", f"{TELLS}/ready").status_code == 200
        assert infer(served, tensor()).status_code == 409
        assert served.post("/predict", json={"inputs": X.tolist()}).status_code == 409
    finally:
        object.__setattr__(hosted.store.current, "classes", [0, 1, 2, 3])


def test_what_models_take_and_give(served: Service) -> None:
    assert served.get(AT) == {
        "name": "plain",
        "versions": ["2"],
        "platform": "spacenet_safetensors",
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 8]}],
        "outputs": [
            {"name": "label", "datatype": "INT64", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, 4]},
        ],
    }
    assert [(each["name"], each["datatype"]) for each in served.get(TELLS)["outputs"]] == [
        ("label", "BYTES"),
        ("probabilities", "FP32"),
        ("unknown", "BOOL"),
        ("typicality", "FP32"),
    ]


def test_other_versions_are_not_there(served: Service) -> None:
    assert infer(served, tensor(), f"{AT}/versions/2").json() == infer(served, tensor()).json()
    for answer in (infer(served, tensor(), f"{AT}/versions/1"), served.ask("GET", f"{AT}/versions/x")):
        assert answer.status_code == 404
        assert "has the version 2" in answer.json()["error"]
    assert infer(served, tensor(), "/v2/models/none").status_code == 404


def test_answers_are_the_models(served: Service, learned: dict[str, Model]) -> None:
    answer = infer(served, tensor(), id="a 1")
    found = outputs(answer)
    assert {name: answer.json()[name] for name in ("model_name", "model_version", "id")} == {
        "model_name": "plain",
        "model_version": "2",
        "id": "a 1",
    }
    assert list(found) == ["label", "probabilities"]
    assert found["label"].tolist() == learned["plain"].predict(X)
    np.testing.assert_allclose(found["probabilities"], learned["plain"].predict_proba(X), atol=1e-7)
    nested = infer(served, tensor(data=X.tolist()), outputs=[{"name": "label"}])
    assert list(outputs(nested)) == ["label"]
    assert "id" not in nested.json()


def test_unknown_samples(served: Service, learned: dict[str, Model]) -> None:
    x = np.concatenate([blobs([0, "cat"])[0], np.full((2, 8), 1e20, np.float32)])
    found, typicality = outputs(infer(served, tensor(x), TELLS)), learned["tells"].typicality(x)
    np.testing.assert_allclose(found["typicality"], typicality, atol=1e-7)
    assert found["unknown"].tolist() == (typicality < 0.05).tolist()
    assert found["unknown"][-2:].all()
    assert "unknown" not in found["label"]
    assert not found["probabilities"][-2:].any()
    marked = outputs(infer(served, tensor(x), TELLS, parameters={"unknown": 0.5}))
    assert marked["unknown"].tolist() == (typicality < 0.5).tolist() == (marked["label"] == "unknown").tolist()
    refused = infer(served, tensor(), parameters={"unknown": 0.5})
    assert (refused.status_code, "cannot tell unknown" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize(
    ("datatype", "kind"),
    [
        *((f"INT{8 * size}", f"i{size}") for size in (1, 2, 4, 8)),
        *((f"UINT{8 * size}", f"u{size}") for size in (1, 2, 4, 8)),
        *((f"FP{8 * size}", f"f{size}") for size in (2, 4, 8)),
        ("BOOL", "?"),
    ],
)
def test_all_numbers_in_json_and_as_bytes(served: Service, learned: dict[str, Model], datatype: str, kind: str) -> None:
    x = np.arange(16).reshape(2, 8).astype(kind)
    expected = learned["plain"].predict_proba(x)
    found = outputs(infer(served, tensor(x, datatype)))["probabilities"]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    given = {"name": "input", "shape": [2, 8], "datatype": datatype, "parameters": {"binary_data_size": x.nbytes}}
    head = {"inputs": [given], "outputs": [{"name": "probabilities", "parameters": {"binary_data": True}}]}
    answer = send_binary(served, head, x.tobytes())
    length = int(answer.headers["Inference-Header-Content-Length"])
    (described,) = json.loads(answer.content[:length])["outputs"]
    assert described["parameters"] == {"binary_data_size": len(answer.content) - length}
    np.testing.assert_allclose(np.frombuffer(answer.content[length:], "<f4").reshape(2, 4), expected, atol=1e-7)


def test_bf16_and_labels_as_bytes(served: Service) -> None:
    x = blobs(["cat"])[0][:3]
    upper = (x.view("<u4") >> 16).astype("<u2")
    given = {"name": "input", "shape": [3, 8], "datatype": "BF16", "parameters": {"binary_data_size": upper.nbytes}}
    answer = send_binary(
        served, {"inputs": [given], "parameters": {"binary_data_output": True}}, upper.tobytes(), at=TELLS
    )
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert answer.content[length:].startswith(3 * (struct.pack("<I", 3) + b"cat"))


GOOD = tensor()
BAD: dict[str, tuple[Any, str]] = {
    "no inputs": ({"inputs": []}, "takes one input"),
    "two inputs": ({"inputs": [GOOD, GOOD]}, "takes one input"),
    "another name": ({"inputs": [{**GOOD, "name": "x"}]}, "takes one input"),
    "no shape": ({"inputs": [{"name": "input", "datatype": "FP32", "data": []}]}, "shape"),
    "a shape without axes": ({"inputs": [{**GOOD, "shape": []}]}, "list of 1 to 8 lengths"),
    "negative": ({"inputs": [{**GOOD, "shape": [-5, -64]}]}, "list of 1 to 8 lengths"),
    "many axes": ({"inputs": [{**GOOD, "shape": [10**18] * 10_000}]}, "list of 1 to 8 lengths"),
    "huge": ({"inputs": [{**GOOD, "shape": [10**18, 10**18]}]}, "too many"),
    "a shape of texts": ({"inputs": [{**GOOD, "shape": ["40", "8"]}]}, "shape"),
    "another shape": ({"inputs": [{**GOOD, "shape": [20, 16]}]}, "the model takes"),
    "no rows": ({"inputs": [{**GOOD, "shape": [0, 8], "data": []}]}, "no samples"),
    "too few": ({"inputs": [{**GOOD, "data": [1.0]}]}, "has 1 values"),
    "nested otherwise": ({"inputs": [{**GOOD, "data": X.T.tolist()}]}, "not nested as its shape says"),
    "a datatype": ({"inputs": [{**GOOD, "datatype": "FP128"}]}, "unknown datatype"),
    "texts": ({"inputs": [{**GOOD, "data": ["1"] * 320}]}, "not FP32"),
    "floats as integers": ({"inputs": [{**GOOD, "datatype": "INT8"}]}, "not INT8"),
    "too large integers": ({"inputs": [{**GOOD, "datatype": "UINT8", "data": [256] * 320}]}, "too large"),
    "negative bytes": ({"inputs": [{**GOOD, "datatype": "UINT8", "data": [-1] * 320}]}, "too large"),
    "beyond 64 bits": ({"inputs": [{**GOOD, "data": [10**400] * 320}]}, "too large"),
    "null": ({"inputs": [{**GOOD, "data": [None] * 320}]}, "not FP32"),
    "NaN": ({"inputs": [{**GOOD, "data": [float("nan")] * 320}]}, "NaN"),
    "no data": ({"inputs": [{**GOOD, "data": None}]}, "give its data"),
    "no texts are taken": ({"inputs": [{**GOOD, "datatype": "BYTES", "data": ["x"] * 320}]}, "no encoder"),
    "another output": ({"inputs": [GOOD], "outputs": [{"name": "scores"}]}, "unknown output 'scores'"),
    "classification": (
        {"inputs": [GOOD], "outputs": [{"name": "label", "parameters": {"classification": 3}}]},
        "classification extension",
    ),
    "an output twice": ({"inputs": [GOOD], "outputs": [{"name": "label"}] * 10_000}, "'label' is asked for twice"),
    "a rate": ({"inputs": [GOOD], "parameters": {"unknown": "5 %"}}, "between 0 and 1"),
    "a number as id": ({"id": 1, "inputs": [GOOD]}, "id"),
    "a list": ([], "object"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_refused_with_a_reason(served: Service, name: str) -> None:
    content, words = BAD[name]
    answer = served.post(f"{AT}/infer", content=json.dumps(content).encode())
    assert 400 <= answer.status_code < 500, answer.text
    assert words in answer.json()["error"]
    assert len(answer.content) < 500


SENT = {"name": "input", "shape": [1, 8], "datatype": "FP32", "parameters": {"binary_data_size": 32}}
BAD_BINARY: dict[str, tuple[dict[str, Any], bytes, int | str | None, str]] = {
    "too short": (SENT, bytes(31), None, "31 bytes are left"),
    "too long": (SENT, bytes(33), None, "belong to no input"),
    "another shape": ({**SENT, "shape": [2, 8]}, bytes(32), None, "need 64"),
    "a size of text": ({**SENT, "parameters": {"binary_data_size": "32"}}, bytes(32), None, "binary_data_size"),
    "a negative size": ({**SENT, "parameters": {"binary_data_size": -1}}, bytes(32), None, "binary_data_size"),
    "data twice": ({**SENT, "data": [1.0] * 8}, bytes(32), None, "either in the JSON or after it"),
    "a length beyond": (SENT, bytes(32), 10**6, "no length"),
    "no number": (SENT, bytes(32), "x", "no length"),
    "a cut text": (
        {**SENT, "datatype": "BYTES", "parameters": {"binary_data_size": 6}},
        struct.pack("<I", 2**31) + b"ab",
        None,
        "middle of a text",
    ),
    "NaN": (SENT, np.full(8, np.nan, "<f4").tobytes(), None, "NaN"),
}


@pytest.mark.parametrize("name", BAD_BINARY)
def test_bad_bytes_are_refused_with_a_reason(served: Service, name: str) -> None:
    given, content, length, words = BAD_BINARY[name]
    answer = send_binary(served, {"inputs": [given]}, content, length)
    assert 400 <= answer.status_code < 500, answer.text
    assert words in answer.json()["error"]


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda each: st.one_of(st.lists(each, max_size=4), st.dictionaries(st.text(max_size=5), each, max_size=3)),
    max_leaves=10,
)


@given(st.sampled_from(["name", "shape", "datatype", "data", "parameters"]), VALUES, st.binary(max_size=40))
@settings(max_examples=60)
def test_no_tensor_makes_it_fail(served: Service, field: str, value: Any, after: bytes) -> None:
    given_ = {**SENT, "data": None, field: value}
    for answer in (
        send_binary(served, {"inputs": [given_]}, after),
        served.post(f"{AT}/infer", content=json.dumps({"inputs": [{**GOOD, field: value}]}).encode()),
    ):
        assert answer.status_code < 500, answer.text


@pytest.mark.parametrize("path", [f"{AT}/infer", "/predict"])
def test_deep_json_is_refused(served: Service, path: str) -> None:
    for content in (b"[" * 100_000, b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":' * 100_000):
        answer = served.post(path, content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, bool(answer.json()["error"])) == (400, True)


def test_compressed_bodies_are_refused(served: Service) -> None:
    answer = served.post(f"{AT}/infer", content=b"x", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415


def test_large_answers_are_refused(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v2, "MAX_PREDICTIONS", 100)
    assert infer(served, tensor()).status_code == 413
    assert infer(served, tensor(), outputs=[{"name": "label"}]).status_code == 200
    assert infer(served, tensor(), parameters={"binary_data_output": True}).status_code == 200
