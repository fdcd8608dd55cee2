"""Hostile bodies: each is a 4xx, quickly, at every address that takes one."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.support import Service, service

DEEP = 100_000
PLACES = ["/predict", "/models/model/predict", "/v2/models/model/infer", "/learn", "/edit"]
TENSOR = {"name": "input", "shape": [1, 8], "datatype": "FP32", "data": [0.5] * 8}


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("learner"), learns=True, max_bytes=2**20) as it:
        yield it
        assert it.post("/predict", json={"inputs": [[0.5] * 8]}).status_code == 200
        assert it.get("/jobs")["jobs"] == []


def _nested(key: str, depth: int, closed: bool) -> bytes:
    return b'{"%b": %b%b}' % (key.encode(), b"[" * depth, b"]" * depth if closed else b"")


BODIES: dict[str, bytes] = {
    "brackets": b"[" * DEEP,
    "braces": b'{"inputs":' * DEEP,
    "deep inputs": _nested("inputs", DEEP, True),
    "deep inputs without an end": _nested("inputs", DEEP, False),
    "deep labels": _nested("labels", DEEP, True),
    "deep action": _nested("action", DEEP, True),
    "deep objects": b'{"inputs": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep tensor": json.dumps({"inputs": [{**TENSOR, "data": "DATA"}]})
    .replace('"DATA"', "[" * 999 + "]" * 999)
    .encode(),
    "long number": b'{"inputs": [[' + b"9" * 500_000 + b"]]}",
    "long text": b'{"inputs": "' + b"a" * 500_000 + b'"}',
    "many keys": json.dumps({f"key{number}": 1 for number in range(30_000)}).encode(),
    "the same key often": b"{" + b",".join([b'"inputs": []'] * 30_000) + b"}",
    "not UTF-8": b'{"inputs": ["\xff\xfe"]}',
    "a byte order mark": b'\xef\xbb\xbf{"inputs": []}',
    "half a surrogate": rb'{"inputs": ["\ud800"]}',
    "NaN": b'{"inputs": [[NaN, 1, 2, 3, 4, 5, 6, 7]], "labels": [1]}',
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "an object": b"{}",
    "zeros": b"\0" * 100_000,
}
WRONG: list[Any] = [None, True, 7, 1e400, "text", {}, {"a": 1}, [None], [{}], ["a"], [[["a"]]], [[[]]]]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("place", PLACES)
def test_each_is_refused_quickly(learner: Service, place: str, name: str) -> None:
    for kind in ("application/json", "application/json; charset=utf-16", "application/octet-stream"):
        began = time.perf_counter()
        answer = learner.post(place, content=BODIES[name], headers={"content-type": kind})
        assert time.perf_counter() - began < 2
        assert 400 <= answer.status_code < 500, answer.text[:300]
        assert len(answer.json()["error"]) < 2000


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_wrong_types_are_refused(learner: Service, wrong: Any) -> None:
    tensors = [{**TENSOR, key: wrong} for key in ("name", "shape", "datatype", "data")]
    requests: list[tuple[str, Any]] = [("/predict", {"inputs": wrong})]
    if wrong not in (None, 7):
        requests.append(("/predict", {"inputs": [[0.5] * 8], "top": wrong}))
    requests += [("/learn", {"inputs": wrong, "labels": [1]}), ("/learn", {"inputs": [[0.5] * 8] * 3, "labels": wrong})]
    requests += [("/v2/models/model/infer", {"inputs": each}) for each in (wrong, *([tensor] for tensor in tensors))]
    requests.append(("/edit", {"action": wrong}))
    if wrong != ["a"]:  # a class that there might be
        requests.append(("/edit", {"action": "forget", "labels": wrong}))
    for place, content in requests:
        if place.endswith("infer") and content["inputs"] != wrong and wrong == "text":
            continue  # a tensor may have any name
        text = json.dumps(content).replace("Infinity", "1e400")
        answer = learner.post(place, content=text.encode(), headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (place, text, answer.text[:300])


@pytest.mark.parametrize("place", [place for place in PLACES if "infer" not in place])  # clients of V2 name no type
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx", "a" * 9000]
)
def test_what_a_page_may_send_unasked_is_not_taken(learner: Service, place: str, kind: str) -> None:
    """A browser sends these to other origins without asking first."""
    content = json.dumps({"inputs": [[0.5] * 8], "labels": [1], "action": "undo"}).encode()
    answer = learner.post(place, content=content, headers={"content-type": kind} if kind else {})
    assert answer.status_code == 415, answer.text
