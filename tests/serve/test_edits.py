"""Edits over HTTP: through the queue, with the words of the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo_path
from tests.model.support import model
from tests.serve.support import Service, ended, service

NAME = "model.safetensors"


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Service]:
    save_model(tmp_path / NAME, model([0, 1], ["cat", "secret"]))
    with service(tmp_path, learns=True) as found:
        yield found


def edit(it: Service, action: str, path: str = "/edit", **rest: Any) -> dict[str, Any]:
    answer = it.post(path, json={"action": action, **rest})
    assert answer.status_code == 202, answer.text
    assert answer.json()["kind"] == action
    return ended(it, answer.json()["number"])


def test_labels_are_changed_and_the_last_change_is_undone(it: Service, tmp_path: Path) -> None:
    job = edit(it, "rename", label="cat", new="lion")
    assert (job["state"], job["classes"], job["into"], job["error"]) == ("done", ["cat"], "lion", None)
    before = (tmp_path / NAME).read_bytes()
    assert edit(it, "merge", labels=[0, 1], into=7, path="/models/model/edit")["state"] == "done"
    assert it.get("/model")["tasks"] == [[7, 7], ["lion", "secret"]]
    assert load_model(tmp_path / NAME).tasks == [(7, 7), ("lion", "secret")]
    assert edit(it, "undo")["state"] == "done"
    assert (tmp_path / NAME).read_bytes() == before
    assert it.get("/model")["tasks"] == [[0, 1], ["lion", "secret"]]
    assert not undo_path(tmp_path / NAME).exists()


def test_a_class_that_is_removed_is_in_no_file(it: Service, tmp_path: Path) -> None:
    edit(it, "rename", label="cat", new="secret")  # fails, and says so
    edit(it, "rename", label="cat", new="pet")
    edit(it, "rename", label="secret", new="hidden")
    edit(it, "rename", label="hidden", new="secret")
    before = (tmp_path / NAME).read_bytes()
    job = edit(it, "forget", label="secret", keep_undo=True)
    assert (job["state"], job["classes"]) == ("done", [])
    assert edit(it, "undo")["state"] == "done"
    assert (tmp_path / NAME).read_bytes() == before
    job = edit(it, "forget", labels=["secret", 1])
    assert job["state"] == "done"
    assert it.get("/model")["classes"] == [0, "pet"]
    assert "nothing to undo" in edit(it, "undo")["error"]
    assert [path for path in tmp_path.iterdir() if path.is_file() and b"secret" in path.read_bytes()] == []
    assert "secret" not in json.dumps(it.get("/jobs"))
    assert "pet" in json.dumps(it.get("/jobs"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"action": "rename", "label": "cta", "new": "x"}, "unknown class 'cta', did you mean 'cat'?"),
        ({"action": "rename", "label": "cat", "new": "secret"}, "there is a class 'secret' already"),
        ({"action": "merge", "labels": ["cat"], "into": "lion"}, "two classes are needed"),
        ({"action": "forget", "labels": [0, 1, "cat", "secret"]}, "is the only class of this model"),
        ({"action": "undo"}, "nothing to undo"),
    ],
)
def test_what_the_model_refuses_is_said_by_the_job(
    it: Service, tmp_path: Path, body: dict[str, Any], message: str
) -> None:
    before = (tmp_path / NAME).read_bytes()
    job = edit(it, **body)
    assert (job["state"], message in job["error"]) == ("failed", True), job
    assert (tmp_path / NAME).read_bytes() == before


BAD: dict[str, tuple[str, str]] = {
    "no action": ("{}", "action: Field required"),
    "another action": ('{"action": "compact"}', "action: Input should be"),
    "misspelt": ('{"action": "undo", "lable": "cat"}', "lable"),
    "rename without new": ('{"action": "rename", "label": "cat"}', "send action, label and new"),
    "rename of two": ('{"action": "rename", "labels": [0, 1], "new": 2}', "send action, label and new"),
    "rename with into": ('{"action": "rename", "label": 0, "into": 2}', "new goes with rename"),
    "merge with new": ('{"action": "merge", "labels": [0, 1], "new": 2}', "new goes with rename"),
    "merge without into": ('{"action": "merge", "labels": [0, 1]}', "and into"),
    "forget nothing": ('{"action": "forget"}', "forget takes other labels"),
    "forget with into": ('{"action": "forget", "label": 0, "into": 1}', "forget takes other labels"),
    "undo of a class": ('{"action": "undo", "label": 0}', "send action alone"),
    "undo with keep_undo": ('{"action": "undo", "keep_undo": true}', "keep_undo: goes with forget"),
    "too many": (json.dumps({"action": "forget", "labels": list(range(101))}), "at most 100"),
    "a list": ('{"action": "forget", "label": ["cat"]}', "label"),
    "null": ('{"action": "forget", "labels": [null]}', "labels"),
    "infinite": ('{"action": "forget", "label": 1e400}', "not finite"),
    "NaN": ('{"action": "forget", "label": NaN}', "not finite"),
    "huge": ('{"action": "forget", "label": 99999999999999999999}', "too large"),
    "long": (json.dumps({"action": "rename", "label": 0, "new": "a" * 101}), "more than 100 letters"),
    "half a letter": ('{"action": "rename", "label": 0, "new": "\\ud800"}', ""),
    "a word": ('{"action": "forget", "label": 0, "keep_undo": "yes"}', "keep_undo"),
    "not JSON": ("{action", ""),
}


def test_bad_edits_are_refused_with_a_reason(it: Service) -> None:
    for name, (body, words) in BAD.items():
        answer = it.post("/edit", content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, name
        assert words in answer.json()["error"], name
    assert it.post("/edit", content=b"{}").status_code == 415
    assert it.get("/jobs") == {"jobs": []}


def test_a_service_that_only_predicts_has_no_jobs(tmp_path: Path) -> None:
    with service(tmp_path) as it:
        for route in ("POST /edit", "DELETE /jobs/1", "GET /jobs/1", "POST /models/model/edit"):
            answer = it.ask(*route.split(), json={"action": "undo"})
            assert (answer.status_code, "--allow-learn" in answer.json()["error"]) == (403, True)
        assert it.get("/jobs") == {"jobs": []}
        assert it.get("/learn")["state"] == "none"


def test_edits_are_described(it: Service) -> None:
    paths = it.get("/openapi.json")["paths"]
    form = paths["/edit"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert form["properties"]["action"]["enum"] == ["rename", "merge", "forget", "undo"]
    assert "202" in paths["/edit"]["post"]["responses"]
    cancel = paths["/models/{name}/jobs/{number}"]["delete"]
    assert [each["name"] for each in cancel["parameters"]] == ["name", "number"]
