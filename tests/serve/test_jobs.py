"""Jobs of a model that is served, in a real process; whatever happens to it, the last good model stays."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.errors import SettingsError
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo_path
from spacenet.serve import jobs as jobs_module
from spacenet.serve import worker
from spacenet.serve.blank import Blank
from spacenet.serve.jobs import Jobs
from spacenet.serve.messages import Job, RequestError
from spacenet.serve.store import Store
from tests.model.support import SHAPE, blobs, model, model_config
from tests.serve.support import NPZ, Service, ended, npz, pretend, service

NAME = "model.safetensors"
TASK = blobs(["cat", "dog"])
INPUTS = TASK[0][::5].tolist()
WAITS = "sys.stdin.read()"


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def learn(it: Service) -> Any:
    answer = it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ)
    assert answer.status_code == 202, answer.text
    return answer.json()


def jobs_of(it: Service) -> Jobs:
    assert it.learning is not None
    return it.learning


def test_a_task_is_learned_while_predictions_go_on(tmp_path: Path) -> None:
    with service(tmp_path, learns=True) as it:
        (tmp_path / NAME).chmod(0o640)
        before = it.post("/predict", json={"inputs": INPUTS}).json()
        begun = learn(it)
        assert (begun["state"], begun["samples"], begun["classes"]) == ("running", 40, ["cat", "dog"])
        assert it.get("/health")["learning"]["number"] == 1
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
    assert files_in(tmp_path) == [NAME, f"{NAME}.jobs.json", f"{NAME}.undo"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}
    # The same as if it had been learned here.
    expected = model()
    expected.learn(*TASK)
    saved = load_model(tmp_path / NAME)
    assert saved.tasks == [(0, 1), (2, 3), ("cat", "dog")]
    np.testing.assert_allclose(saved.predict_proba(TASK[0]), expected.predict_proba(TASK[0]), rtol=1e-5)
    assert saved.config == expected.config


def test_a_killed_learner_leaves_the_last_good_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, WAITS)
    with service(tmp_path, learns=True) as it:
        content, before = (tmp_path / NAME).read_bytes(), it.post("/predict", json={"inputs": INPUTS}).json()
        for number in (1, 2):  # after the first, another may begin
            assert learn(it)["number"] == number
            while (process := jobs_of(it).process) is None:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
            job = ended(it)
            assert (job["state"], "signal 9" in job["error"]) == ("failed", True)
        assert it.post("/predict", json={"inputs": INPUTS}).json() == before
    assert files_in(tmp_path) == [NAME, f"{NAME}.jobs.json"]
    assert (tmp_path / NAME).read_bytes() == content


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('print("noise"); print("{\\"error\\": \\"hidden1 is full\\"}"); sys.exit(1)', "hidden1 is full"),
        ("sys.exit(3)", "ended unexpectedly"),
        ('open(folder + "/new.safetensors", "w").write("half a mod")', "not a model file"),
    ],
)
def test_a_learner_that_fails(tmp_path: Path, script: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, script)
    with service(tmp_path, learns=True) as it:
        learn(it)
        job = ended(it)
        assert (job["state"], words in job["error"]) == ("failed", True)
        assert it.get("/health")["tasks"] == 2
    assert files_in(tmp_path) == [NAME, f"{NAME}.jobs.json"]


def test_jobs_wait_for_their_turn_until_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, WAITS)
    monkeypatch.setattr(jobs_module, "MAX_WAITING", 2)
    with service(tmp_path, learns=True) as it:
        assert [learn(it)["state"] for _ in range(3)] == ["running", "queued", "queued"]
        for path, body in (("/learn", {"inputs": INPUTS, "labels": INPUTS}), ("/edit", {"action": "undo"})):
            full = it.post(path, json=body)
            assert (full.status_code, full.headers["retry-after"]) == (503, "10")
            assert "2 jobs are waiting already" in full.json()["error"]
        assert [(job["number"], job["state"]) for job in it.get("/jobs")["jobs"]] == [
            (3, "queued"),
            (2, "queued"),
            (1, "running"),
        ]
        assert it.get("/learn")["number"] == 3
        assert it.ask("DELETE", "/jobs/2").json()["state"] == "canceled"
        assert it.ask("DELETE", "/jobs/1").json()["state"] == "canceled"
        while it.get("/jobs/3")["state"] != "running":
            time.sleep(0.01)
        assert it.ask("DELETE", "/models/model/jobs/3").json()["state"] == "canceled"
        for number, status in ((3, 409), (99, 404), ("x", 404)):
            assert it.ask("DELETE", f"/jobs/{number}").status_code == status
        assert it.ask("GET", "/jobs/99").status_code == 404
    assert files_in(tmp_path) == [NAME, f"{NAME}.jobs.json"]


def test_jobs_are_done_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = model([0, 1], [2, 3], ["cat", "dog"])
    save_model(tmp_path / "prepared", learned)
    pretend(monkeypatch, f"import shutil; shutil.copy({str(tmp_path / 'prepared')!r}, folder + '/new.safetensors')")
    (tmp_path / "models").mkdir()
    with service(tmp_path / "models", learns=True) as it:
        jobs = jobs_of(it)
        first = jobs.submit_learn(*TASK)
        jobs.submit_edit("rename", ["cat"], "lion")
        jobs.submit_edit("rename", ["cat"], "tiger")
        last = jobs.submit_edit("merge", ["lion", "dog"], "pet")
        assert jobs.wait(last.number, 20).state == "done"
        assert [job.state for job in jobs.list()] == ["done", "failed", "done", "done"]
        assert jobs.get(first.number).samples == 40
        assert it.get("/model")["tasks"] == [[0, 1], [2, 3], ["pet", "pet"]]


def test_undo_takes_back_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / "prepared", model([0, 1], [2, 3], ["cat", "dog"]))
    pretend(monkeypatch, f"import shutil; shutil.copy({str(tmp_path / 'prepared')!r}, folder + '/new.safetensors')")
    (tmp_path / "models").mkdir()
    with service(tmp_path / "models", learns=True) as it:
        path = tmp_path / "models" / NAME
        before, jobs = path.read_bytes(), jobs_of(it)
        jobs.wait(jobs.submit_learn(*TASK).number, 20)
        assert path.read_bytes() == (tmp_path / "prepared").read_bytes()
        assert jobs.wait(jobs.submit_undo().number, 20).state == "done"
        assert path.read_bytes() == before
        assert not undo_path(path).exists()
        again = jobs.wait(jobs.submit_undo().number, 20)
        assert (again.state, "nothing to undo" in str(again.error)) == ("failed", True)


def test_a_service_that_is_stopped_leaves_its_jobs_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        pretend(patch, WAITS)
        with service(tmp_path, learns=True) as it:
            learn(it)
            assert it.post("/edit", json={"action": "rename", "label": "cat", "new": "lion"}).status_code == 202
            process = jobs_of(it).process
        assert process is None or process.returncode is not None
        assert len(list(tmp_path.glob(f".{NAME}.job-*"))) == 2
        with pytest.raises(RequestError, match="being stopped"):
            jobs_of(it).check_room()
    with service(tmp_path, learns=True) as it:
        assert ended(it, 2)["state"] == "done"
        assert ended(it, 1)["state"] == "done"
        assert it.get("/model")["tasks"][2] == ["lion", "dog"]
        assert it.post("/edit", json={"action": "undo"}).json()["number"] == 3
        assert ended(it, 3)["state"] == "done"
    assert not list(tmp_path.glob(".*"))


def test_jobs_that_are_not_durable_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, WAITS)
    save_model(tmp_path / NAME, model([0, 1]))
    jobs = Jobs(Store(tmp_path / NAME), durable=False)
    running, waiting = jobs.submit_learn(*TASK), jobs.submit_edit("rename", [0], 7)
    assert len(files_in(tmp_path)) == 3
    jobs.close()
    jobs.close()
    assert {jobs.get(each.number).state for each in (running, waiting)} == {"canceled"}
    assert files_in(tmp_path) == [NAME]


def test_a_new_model_is_made_by_its_first_task(tmp_path: Path) -> None:
    jobs = Jobs(store := Store.create(tmp_path / NAME, model_config(), SHAPE))
    try:
        with pytest.raises(RequestError, match="nothing has been learned yet") as info:
            store.current.measure(TASK[0])
        assert info.value.status == 409
        edited = jobs.wait(jobs.submit_edit("rename", ["cat"], "lion").number, 20)
        assert (edited.state, "nothing has been learned yet" in str(edited.error)) == ("failed", True)
        job = jobs.wait(jobs.submit_learn(*TASK).number, 60)
        assert (job.state, job.samples) == ("done", 40)
    finally:
        jobs.close()
    blank = Blank(model_config(), SHAPE).new_model()
    blank.learn(*TASK)
    saved = load_model(tmp_path / NAME)
    assert saved.tasks == store.current.model.tasks == [("cat", "dog")]
    assert saved.config == blank.config
    np.testing.assert_allclose(saved.predict_proba(TASK[0]), blank.predict_proba(TASK[0]), rtol=1e-5)
    with pytest.raises(SettingsError, match="is there already"):
        Store.create(tmp_path / NAME, model_config(), SHAPE)


def test_a_full_disk_is_said_when_a_job_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with service(tmp_path, learns=True) as it:
        monkeypatch.setattr("numpy.savez", full)
        answer = it.post("/learn", content=npz(x=TASK[0], y=TASK[1]), headers=NPZ)
        assert (answer.status_code, "No space left on device" in answer.json()["error"]) == (503, True)
        assert it.get("/learn")["state"] == "failed"
        assert not list(tmp_path.glob(".*"))


def test_a_folder_that_cannot_be_written_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(SettingsError, match="cannot be written"):
        Jobs(Store(tmp_path / NAME))


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
            it.store._current = served
            answer = it.post("/predict", json={"inputs": INPUTS, "top": 4}).json()
            right[answer["tasks"]] = answer
        over = threading.Event()

        def exchange() -> None:
            while not over.is_set():
                for served in models:
                    it.store._current = served
                    time.sleep(0.0005)

        thread = threading.Thread(target=exchange)
        thread.start()
        answers = [it.post("/predict", json={"inputs": INPUTS, "top": 4}).json() for _ in range(100)]
        over.set()
        thread.join()
    assert {answer["tasks"] for answer in answers} == {1, 2}
    assert all(answer == right[answer["tasks"]] for answer in answers)


class Trap:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["damaged", "cut off", "one array", "code"])
def test_samples_that_cannot_be_used_are_refused(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    x = np.array([Trap(tmp_path / "caught")], dtype=object) if kind == "code" else TASK[0]
    arrays: dict[str, Any] = {"x": x} if kind == "one array" else {"x": x, "y": TASK[1]}
    np.savez(tmp_path / "data.npz", **arrays)
    content = (tmp_path / "data.npz").read_bytes()
    (tmp_path / "data.npz").write_bytes({"damaged": b"PK", "cut off": content[:-99]}.get(kind, content))
    assert worker.main([str(tmp_path / name) for name in (NAME, "data.npz", "new.safetensors")]) == 2
    assert "data.npz does not hold samples and labels" in json.loads(capsys.readouterr().out)["error"]
    assert not (tmp_path / "caught").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [(("data.npz",), "data.npz cannot be read (No such file or directory)"), (("blank",), "does not describe a model")],
)
def test_files_that_cannot_be_read_are_no_fault_of_the_program(
    tmp_path: Path, files: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path / NAME, model([0, 1]))
    (tmp_path / "blank").write_text('{"config": {}, "input_shape": ["x"]}')
    arguments = [NAME, "data.npz", "new.safetensors", *(name for name in files if name == "blank")]
    assert worker.main([str(tmp_path / name) for name in arguments]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]


def test_the_description_of_a_blank_model_is_read_again(tmp_path: Path) -> None:
    blank = Blank(model_config("spacenet-density"), SHAPE)
    blank.save(tmp_path / "blank")
    assert Blank.load(tmp_path / "blank") == blank


def test_a_job_that_is_over_says_so() -> None:
    states = {state: Job(state=state).is_over for state in Job.model_fields["state"].annotation.__args__}  # type: ignore[union-attr]
    assert [state for state, over in states.items() if not over] == ["queued", "running"]
