"""Learning while serving, in a real process; whatever happens to it, the last good model stays."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.errors import ModelFileError, SettingsError
from spacenet.model.file import load_model, save_model
from spacenet.serve import worker
from spacenet.serve.jobs import Process, TrainingJob
from spacenet.serve.store import Store
from tests.model.support import blobs, model
from tests.serve.support import NPZ, ended, npz, service

NAME = "model.safetensors"
TASK = blobs(["cat", "dog"])
INPUTS = TASK[0][::5].tolist()


def _only_the_model(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == [NAME]


def test_a_task_is_learned_while_predictions_go_on(tmp_path: Path) -> None:
    with service(tmp_path, learns=True) as it:
        (tmp_path / NAME).chmod(0o640)
        before = it.post("/predict", json={"inputs": INPUTS}).json()
        begun = it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ)
        assert (begun.status_code, begun.json()["state"], begun.json()["samples"]) == (202, "running", 40)
        assert it.get("/health")["learning"]["number"] == 1
        again = it.post("/learn", json={"inputs": INPUTS, "labels": [0] * len(INPUTS)})
        assert (again.status_code, "being learned" in again.json()["error"]) == (409, True)
        answers = [it.post("/predict", json={"inputs": INPUTS}).json()]
        while it.get("/learn")["state"] == "running":
            answers.append(it.post("/predict", json={"inputs": INPUTS}).json())
            time.sleep(0.05)
        job = ended(it)
        after = it.post("/predict", json={"inputs": INPUTS}).json()
        assert (job["state"], job["error"], job["epoch"], job["epochs"]) == ("done", None, 8, 8)
        assert it.get("/health")["learning"] is None
        assert (it.get("/health")["tasks"], it.get("/health")["classes"]) == (3, 6)
    assert all(answer in (before, after) for answer in answers)
    assert (before["tasks"], after["tasks"]) == (2, 3)
    assert _only_the_model(tmp_path)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o640
    # The same as if it had been learned here.
    expected = model()
    expected.learn(*TASK)
    saved = load_model(tmp_path / NAME)
    assert saved.tasks == [(0, 1), (2, 3), ("cat", "dog")]
    np.testing.assert_allclose(saved.predict_proba(TASK[0]), expected.predict_proba(TASK[0]), rtol=1e-5)
    assert saved.config == expected.config


def test_a_killed_learner_leaves_the_last_good_model(tmp_path: Path) -> None:
    with service(tmp_path, learns=True) as it:
        content, before = (tmp_path / NAME).read_bytes(), it.post("/predict", json={"inputs": INPUTS}).json()
        for number in (1, 2):  # after the first, another may begin
            assert it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ).json()["number"] == number
            assert it.learning is not None
            assert it.learning.process is not None
            os.kill(it.learning.process.pid, signal.SIGKILL)
            job = ended(it)
            assert (job["state"], "signal 9" in job["error"]) == ("failed", True)
            assert _only_the_model(tmp_path)
        assert it.post("/predict", json={"inputs": INPUTS}).json() == before
    assert (tmp_path / NAME).read_bytes() == content


def test_an_end_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    with service(tmp_path, learns=True) as it:
        it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ)
        assert it.learning is not None
        process = it.learning.process
        assert len(list(tmp_path.iterdir())) == 2
    assert process is not None
    assert process.returncode is not None
    assert _only_the_model(tmp_path)


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Learns a task in a process that only does what a line of Python says; returns the state in the end."""

    def learned(script: str) -> dict[str, Any]:
        def process(self: TrainingJob, folder: Path) -> Process:
            command = [sys.executable, "-S", "-c", f"import sys; folder = sys.argv[1]; {script}", str(folder)]
            return Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        monkeypatch.setattr(TrainingJob, "start_process", process)
        with service(tmp_path, learns=True) as it:
            it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ)
            job = ended(it)
            assert it.get("/health")["tasks"] == 2
        assert _only_the_model(tmp_path)
        return job

    return learned


def test_a_learner_that_says_why_it_failed(pretended: Callable[[str], dict[str, Any]]) -> None:
    job = pretended('print("noise"); print("{\\"error\\": \\"hidden1 is full\\"}"); sys.exit(1)')
    assert (job["state"], job["error"]) == ("failed", "hidden1 is full")


def test_a_learner_that_does_not_say_why(pretended: Callable[[str], dict[str, Any]]) -> None:
    assert "ended unexpectedly" in pretended("sys.exit(3)")["error"]


def test_a_new_file_that_cannot_be_used(pretended: Callable[[str], dict[str, Any]]) -> None:
    job = pretended('open(folder + "/new.safetensors", "w").write("half a mod")')
    assert (job["state"], "not a model file" in job["error"]) == ("failed", True)


def test_a_model_that_was_changed_by_others_is_not_replaced(tmp_path: Path) -> None:
    save_model(tmp_path / NAME, model())
    save_model(tmp_path / "new", model([0, 1]))
    store = Store(tmp_path / NAME)
    before = store.signature()
    save_model(tmp_path / NAME, model([5, 6]))
    with pytest.raises(ModelFileError, match="changed by another process"):
        store.adopt(tmp_path / "new", before)
    assert load_model(tmp_path / NAME).classes == [5, 6]
    assert store.current.model.classes == [5, 6]  # what is on the disk is what is served


def test_what_a_killed_service_left_is_removed(tmp_path: Path) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    left = tmp_path / f".{NAME}.learning-abc"
    left.mkdir()
    (left / "new.safetensors").write_bytes(b"half")
    os.utime(left, (0, 0))
    TrainingJob(Store(tmp_path / NAME))
    assert _only_the_model(tmp_path)


def test_a_folder_that_cannot_be_written_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(SettingsError, match="cannot be written"):
        TrainingJob(Store(tmp_path / NAME))


def test_the_learner_reports_epochs_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    arguments = [str(tmp_path / name) for name in (NAME, "data.npz", "new.safetensors")]
    for number in range(20):
        np.savez(tmp_path / "data.npz", x=TASK[0], y=[f"{label} {number}" for label in TASK[1]])
        if worker.main(arguments):
            break
        (tmp_path / "new.safetensors").replace(tmp_path / NAME)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [facts["epoch"] for facts in said[:8]] == list(range(1, 9))
    assert "is full" in said[-1]["error"]
    assert not (tmp_path / "new.safetensors").exists()


def test_every_answer_comes_from_one_model(tmp_path: Path) -> None:
    """Models are exchanged all the time; what an answer says of its model fits its predictions."""
    paths = [tmp_path / str(number) for number in (1, 2)]
    for path, knows in zip(paths, (model([0, 1]), model()), strict=True):
        save_model(path, knows)
    with service(tmp_path) as it:
        right, models = {}, [Store(path).current for path in paths]
        for served in models:
            it.store.current = served
            answer = it.post("/predict", json={"inputs": INPUTS, "top": 4}).json()
            right[answer["tasks"]] = answer
        over = threading.Event()

        def exchange() -> None:
            while not over.is_set():
                for served in models:
                    it.store.current = served
                    time.sleep(0.0005)

        thread = threading.Thread(target=exchange)
        thread.start()
        answers = [it.post("/predict", json={"inputs": INPUTS, "top": 4}).json() for _ in range(100)]
        over.set()
        thread.join()
    assert {answer["tasks"] for answer in answers} == {1, 2}
    assert all(answer == right[answer["tasks"]] for answer in answers)


def test_data_that_cannot_be_read_is_no_fault_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    assert worker.main([str(tmp_path / name) for name in (NAME, "data.npz", "new.safetensors")]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == f"{tmp_path / 'data.npz'} cannot be read (No such file or directory)"


def test_a_folder_that_cannot_be_flushed_does_not_part_the_service_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new model is in its place by then, so it must be the one that answers."""
    save_model(tmp_path / NAME, model([0, 1]))
    save_model(tmp_path / "new", model())
    store, plain = Store(tmp_path / NAME), os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.adopt(tmp_path / "new", store.signature())
    assert store.current.model.tasks == load_model(tmp_path / NAME).tasks == [(0, 1), (2, 3)]
