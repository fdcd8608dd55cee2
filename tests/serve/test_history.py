"""What became of jobs, in a file beside the model."""

import json
import logging
import os
from pathlib import Path

import pytest

from spacenet.errors import FileError
from spacenet.serve import history as module
from spacenet.serve.history import History
from spacenet.serve.messages import Job


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "m"
    path.write_bytes(b"a model")
    path.chmod(0o640)
    return path


def test_it_outlives_its_process_and_numbers_go_on(model_file: Path) -> None:
    first = History(model_file)
    job = first.add(Job(state="queued", classes=["ä", 1, 1.5, True], submitted="now"))
    first.note(job.model_copy(update={"state": "running"}))
    first.save(job.model_copy(update={"state": "failed", "error": "full", "loss": float("nan")}))
    again = History(model_file)
    (found,) = again.jobs.values()
    assert (found.number, found.state, found.error, found.classes) == (1, "failed", "full", ["ä", 1, 1.5, True])
    assert again.add(Job()).number == 2
    assert (model_file.parent / "m.jobs.json").stat().st_mode & 0o777 == 0o640


def test_the_last_jobs_are_kept_and_all_that_are_not_over(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    history = History(model_file)
    history.add(Job(state="queued"))
    for _ in range(6):
        history.add(Job(state="done"))
    assert list(history.jobs) == list(History(model_file).jobs) == [1, 5, 6, 7]


def test_two_services_share_it(model_file: Path) -> None:
    one, other = History(model_file), History(model_file)
    mine, yours = one.add(Job(state="queued")), other.add(Job(state="queued"))
    assert (mine.number, yours.number) == (1, 2)
    other.save(yours.model_copy(update={"state": "done"}))
    one.save(mine.model_copy(update={"state": "failed"}))
    assert {job.number: job.state for job in History(model_file).jobs.values()} == {1: "failed", 2: "done"}
    assert one.jobs[2].state == "done"


def test_what_another_service_has_done_is_seen(model_file: Path) -> None:
    other = History(model_file)
    job = other.add(Job(state="queued"))
    one = History(model_file)
    assert one.look()[1].state == "queued"
    other.save(job.model_copy(update={"state": "done"}))
    assert one.look()[1].state == "done"


def test_labels_that_are_forgotten_are_dropped(model_file: Path) -> None:
    history = History(model_file)
    history.add(Job(state="done", classes=["cat", "dog"]))
    history.add(Job(state="done", kind="rename", classes=["dog"], into="cat"))
    history.add(Job(state="failed", error="unknown class 'cat2', did you mean 'cat'?"))
    history.save(history.add(Job(state="done", kind="forget", classes=["cat", 1])), ["cat", 1])
    assert "cat" not in (model_file.parent / "m.jobs.json").read_text()
    assert [job.classes for job in history.jobs.values()] == [["dog"], ["dog"], [], []]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "\0" * 100,
        '{"jobs": [{"number": "1"}]}',
        '{"jobs": [{"number": -1}]}',
        '{"jobs": [{"state": "gone"}]}',
        '{"jobs": ' + "[" * 100_000,
        json.dumps({"jobs": [{"classes": ["a"] * 101}]}),
    ],
)
def test_a_file_that_cannot_be_used_is_ignored(
    model_file: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (model_file.parent / "m.jobs.json").write_text(content)
    with caplog.at_level(logging.WARNING):
        history = History(model_file)
    assert "m.jobs.json is ignored" in caplog.text
    assert history.jobs == {}
    assert history.add(Job()).number == 1
    assert len(History(model_file).jobs) == 1


def test_a_file_that_is_too_large_is_ignored(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    History(model_file).add(Job())
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    assert History(model_file).jobs == {}
    assert "too large" in caplog.text


def test_a_full_disk_stops_new_jobs_and_not_those_that_run(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(model_file)
    job = history.add(Job(state="queued"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="No space left"):
            history.add(Job())
        assert list(history.jobs) == [1]
        history.save(job.model_copy(update={"state": "done"}))
    assert "not up to date" in caplog.text
    assert history.jobs[1].state == "done"
    assert [path.name for path in model_file.parent.iterdir() if path.name.startswith(".")] == []
    history.add(Job())
    assert History(model_file).jobs[1].state == "done"


def test_without_a_file_it_lives_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    history = History(None)
    for _ in range(3):
        history.save(history.add(Job(state="done")))
    assert list(history.jobs) == [3]
