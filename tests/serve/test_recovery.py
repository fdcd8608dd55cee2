"""What becomes of jobs whose service has ended, in all states in which that can be."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from spacenet.model.file import save_model
from spacenet.serve.folders import OWNER, PrivateFolder
from spacenet.serve.history import History
from spacenet.serve.messages import Job
from spacenet.serve.queued import DESCRIPTION, Description, QueuedJob
from spacenet.serve.recovery import MAX_ATTEMPTS, now, take_up_jobs
from spacenet.serve.store import Store
from tests.model.support import blobs, model

PREFIX = ".m.job-"
TASK = blobs(["cat", "dog"])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    save_model(tmp_path / "m", model([0, 1]))
    return Store(tmp_path / "m")


def left(store: Store, *, submitted: str | None = None, attempts: int = 0, number: int = 1, **job: Any) -> QueuedJob:
    """A job as a killed service has left it, in the folder and in the history."""
    found = Job(number=number, state="queued", submitted=submitted or now(), **job)
    description = Description(job=found, attempts=attempts)
    queued = QueuedJob.make(store.path.parent, PREFIX, description, TASK if found.kind == "learn" else None)
    for _ in range(attempts and 1):
        queued.description = description.model_copy(update={"attempts": attempts - 1})
        queued.begin(store.signature())
    queued.folder.release()
    history = History(store.path)
    history.save(found)
    return queued


def taken_up(store: Store) -> tuple[list[int], dict[int, Job]]:
    history = History(store.path)
    queued = take_up_jobs(store, history, PREFIX)
    for each in queued:
        each.folder.release()
    assert History(store.path).jobs.keys() == history.jobs.keys()
    return [each.number for each in queued], history.jobs


def is_lost(store: Store, words: str) -> bool:
    numbers, jobs = taken_up(store)
    assert numbers == []
    assert not list(store.path.parent.glob(".*"))
    return jobs[1].state == "lost" and words in str(jobs[1].error)


def test_jobs_that_waited_are_taken_up_in_their_order(store: Store) -> None:
    for number in (2, 10, 1):
        left(store, number=number)
    numbers, jobs = taken_up(store)
    assert numbers == [1, 2, 10]
    assert {job.state for job in jobs.values()} == {"queued"}
    assert taken_up(store)[0] == [1, 2, 10], "none of them was begun"


@pytest.mark.parametrize("kind", ["learn", "forget", "undo"])
def test_a_job_that_was_running_begins_again_if_the_model_is_as_it_was(store: Store, kind: Any) -> None:
    left(store, kind=kind, attempts=1)
    assert taken_up(store)[0] == [1]


def test_a_task_that_was_adopted_is_not_learned_twice(store: Store) -> None:
    queued = left(store, attempts=1)
    save_model(queued.new, model([0, 1], ["cat", "dog"]))
    store.adopt(queued.new, store.signature())  # and then it was killed
    numbers, jobs = taken_up(store)
    assert (numbers, jobs[1].state) == ([], "done")
    assert not list(store.path.parent.glob(".*"))


def test_a_task_that_was_not_adopted_is_learned_again(store: Store) -> None:
    queued = left(store, attempts=1)
    save_model(queued.new, model([0, 1], ["cat", "dog"]))
    assert taken_up(store)[0] == [1]


def test_a_change_by_others_while_a_task_was_learned_does_no_harm(store: Store) -> None:
    left(store, attempts=1)
    save_model(store.path, model([5, 6]))
    assert taken_up(store)[0] == [1]


def test_what_cannot_be_told_any_more_is_lost(store: Store) -> None:
    queued = left(store, attempts=1)
    save_model(queued.new, model([0, 1], ["cat", "dog"]))
    save_model(store.path, model([5, 6]))
    assert is_lost(store, "the model has changed since")


def test_an_edit_is_not_made_twice(store: Store) -> None:
    left(store, kind="undo", attempts=1)
    save_model(store.path, model([5, 6]))
    assert is_lost(store, "the model has changed since")


def test_a_job_that_kills_the_service_is_given_up(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    left(store, attempts=MAX_ATTEMPTS)
    assert is_lost(store, f"killed {MAX_ATTEMPTS} times")
    assert "job 1 (learn) is lost: the service was killed" in caplog.text


@pytest.mark.parametrize("submitted", ["2026-01-01T00:00:00+00:00", "2026-11-19", "9" * 30, "0001-01-01T00:00:00"])
def test_samples_do_not_stay_for_ever(store: Store, submitted: str) -> None:
    left(store, submitted=submitted)
    assert is_lost(store, "more than 7 days")


def test_a_job_without_a_folder_is_lost(store: Store) -> None:
    History(store.path).add(Job(state="running", submitted=now()))
    assert is_lost(store, "nothing is left of the job")


def test_what_the_history_says_is_over_is_removed(store: Store) -> None:
    left(store)
    history = History(store.path)
    history.save(history.jobs[1].model_copy(update={"state": "done"}))
    assert taken_up(store)[0] == []
    assert not list(store.path.parent.glob(".*"))


def test_without_a_history_jobs_keep_their_numbers(store: Store) -> None:
    left(store, number=7)
    store.path.with_name("m.jobs.json").write_text("damaged")
    assert taken_up(store)[0] == [7]
    assert History(store.path).add(Job()).number == 8


GOOD = json.loads(json.dumps(Description(job=Job(number=1, state="queued")).model_dump()))
HOSTILE = {
    "nothing": "",
    "noise": "\0" * 50,
    "a list": "[]",
    "deep": "[" * 100_000,
    "another kind": json.dumps({**GOOD, "job": {**GOOD["job"], "kind": "run"}}),
    "a number": json.dumps({**GOOD, "attempts": "1"}),
    "less than none": json.dumps({**GOOD, "attempts": -1}),
    "a command": json.dumps({**GOOD, "command": "rm"}),
    "large": json.dumps(GOOD) + " " * 2**20,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bad_descriptions_are_ignored(store: Store, name: str, caplog: pytest.LogCaptureFixture) -> None:
    queued = left(store)
    (queued.folder.path / DESCRIPTION).write_text(HOSTILE[name])
    with caplog.at_level(logging.WARNING):
        assert is_lost(store, "nothing is left")
    assert "does not describe a job and is ignored" in caplog.text


def test_folders_that_others_can_write_into_are_not_used(store: Store, tmp_path: Path) -> None:
    planted = left(store).folder.path
    planted.chmod(0o2770)
    assert taken_up(store)[0] == [1], "a volume of Kubernetes with fsGroup"
    planted.chmod(0o777)
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(planted)
    assert PrivateFolder.claim(planted) is PrivateFolder.claim(link) is None
    planted.chmod(0o700)
    (planted / OWNER).write_text("{}")
    assert PrivateFolder.claim(planted) is None
    planted.chmod(0o777)
    assert taken_up(store)[0] == []
