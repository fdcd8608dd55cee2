"""Models of methods that divide no network among tasks are served like others."""

from pathlib import Path

import pytest

from spacenet.model.file import load_model, save_model
from tests.model.support import blobs, model
from tests.serve.support import NPZ, ended, npz, service

NAME = "model.safetensors"


@pytest.mark.parametrize("method", ["icarl"])
def test_it_answers_and_learns(method: str, tmp_path: Path) -> None:
    learned, task = model(method=method), blobs(["cat", "dog"])
    save_model(tmp_path / NAME, learned)
    with service(tmp_path, learns=True) as it:
        facts = it.get("/model")
        assert (facts["method"], facts["space_left"], facts["tasks"]) == (method, None, [[0, 1], [2, 3]])
        found = it.post("/predict", json={"inputs": task[0].tolist()}).json()["predictions"]
        assert [each["label"] for each in found] == learned.predict(task[0])
        assert it.post("/learn", content=npz(x=task[0], y=task[1]), headers=NPZ).status_code == 202
        assert ended(it)["state"] == "done"
        assert it.get("/health")["tasks"] == 3
    learned.learn(*task)
    assert load_model(tmp_path / NAME).predict(task[0]) == learned.predict(task[0])
