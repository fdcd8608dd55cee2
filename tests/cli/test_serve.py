"""`spacenet serve` as a process of its own, at a free port of this computer."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from spacenet.cli.main import main
from spacenet.cli.serve import open_listener
from spacenet.model.file import load_model, save_model
from spacenet.serve.jobs import Jobs
from spacenet.serve.store import Store
from tests.model.support import blobs, model
from tests.warm import start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model(path, model())
    return path


@contextmanager
def _server(
    file: Path, *, files: int | None = None, options: Sequence[str] = ()
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = ["spacenet", "serve", str(file), "--port", "0", "--allow-learn", *options]
    with start(command, files=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"at (http://127\.0\.0\.1:\d+) ", process.stdout.readline())
            assert found
            yield process, found[1]
        finally:
            process.kill()


def _learn(address: str, per_class: int = 20) -> None:
    x, y = blobs(["cat", "dog"], per_class)
    assert httpx.post(f"{address}/learn", json={"inputs": x.tolist(), "labels": y.tolist()}).status_code == 202


def _learner(process: "subprocess.Popen[str]") -> psutil.Process:
    """The worker process of a service, as soon as it is there."""
    while not (found := psutil.Process(process.pid).children()):
        time.sleep(0.01)
    return found[0]


def _ended(address: str, number: int) -> dict[str, Any]:
    while (job := httpx.get(f"{address}/jobs/{number}").json())["state"] in ("queued", "running"):
        time.sleep(0.1)
    return dict(job)


def test_a_killed_service_goes_on_with_its_jobs_and_ctrl_c_ends_it(file: Path) -> None:
    content = file.read_bytes()
    with _server(file) as (process, address):
        _learn(address)
        assert httpx.post(f"{address}/edit", json={"action": "forget", "label": "dog"}).status_code == 202
        learner = _learner(process)
        process.kill()
        process.wait()
        assert len(list(file.parent.glob(".*.job-*"))) == 2
        learner.wait(timeout=20)  # goes with its service
    assert file.read_bytes() == content
    with _server(file) as (process, address):
        assert httpx.get(f"{address}/health").json()["tasks"] == 2
        assert [_ended(address, number)["state"] for number in (1, 2)] == ["done", "done"]
        assert httpx.get(f"{address}/model").json()["tasks"] == [[0, 1], [2, 3], ["cat"]]
        assert httpx.post(f"{address}/predict", content=b" " * 17 * 2**20).status_code == 413
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "stopped\n", "")
    assert load_model(file).tasks == [(0, 1), (2, 3), ("cat",)]
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, f"{file.name}.jobs.json"]


def test_a_signal_ends_the_learner_and_keeps_the_job(file: Path) -> None:
    content = file.read_bytes()
    with _server(file) as (process, address), _server(file) as (second, _):
        _learn(address, per_class=500)
        learner = _learner(process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "stopped\n", "")
        assert not learner.is_running()
        second.send_signal(signal.SIGHUP)
        assert second.wait(timeout=20) == 0
    assert len(list(file.parent.glob(".*.job-*"))) == 1
    assert file.read_bytes() == content
    jobs = Jobs(Store(file))
    try:
        assert jobs.cancel(1).state == "canceled"
    finally:
        jobs.close()
    assert not list(file.parent.glob(".*"))


def test_a_second_service_leaves_the_job_of_the_first_alone(file: Path) -> None:
    with _server(file) as (_, address):
        _learn(address, per_class=500)
        Jobs(Store(file)).close()  # what a second service begins with
        assert httpx.get(f"{address}/learn").json()["state"] == "running", "it was too short to be disturbed"
        job = _ended(address, 1)
        assert (job["state"], job["error"]) == ("done", None)


def test_more_half_requests_than_files_stop_nothing_and_fill_no_log(file: Path) -> None:
    with _server(file, files=200) as (process, address):
        host, port = address.removeprefix("http://").split(":")
        half = [socket.create_connection((host, int(port))) for _ in range(250)]
        for each in half:
            with suppress(OSError):  # those that had to make room
                each.sendall(b"GET /health HTTP/1.1\r\n")
        assert [httpx.get(f"{address}/health").status_code for _ in range(3)] == [200] * 3
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, len(err) < 10_000) == (0, True)
        for each in half:
            each.close()


def test_a_host_that_is_allowed(file: Path) -> None:
    with _server(file, options=("--allow-host", "models.example", "--allow-host", "other.example:81")) as (_, address):
        for host, status in {"models.example": 200, "other.example:81": 200, "evil.example": 421}.items():
            assert httpx.get(f"{address}/health", headers={"host": host}).status_code == status


def test_a_port_that_is_taken(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", str(file), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen at 127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.safetensors"], "no such file"),
        (["FILE", "--port", "70000"], "port: 70000"),
        (["FILE", "--max-request-mb", "0"], "max-request-mb: 0"),
        (["FILE", "--threads", "0"], "threads: 0"),
        (["FILE", "--allow-host", "http://example.org/"], "allow-host: 'http://example.org/' is not the name"),
        (["FILE", "--host", "no such host"], "cannot listen at no such host"),
    ],
)
def test_what_cannot_work_is_said(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as info:
        sys.exit(main(["serve", *(str(file) if word == "FILE" else word for word in arguments)]))
    assert info.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_a_warning_where_others_can_get_in(
    file: Path, host: str, warns: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listen = socket.create_server
    # Never really at that address: only what is said about it is tested.
    monkeypatch.setattr("socket.create_server", lambda address, **rest: listen(("127.0.0.1", 0), **rest))
    monkeypatch.setattr("socket.socket.getsockname", lambda self: ("127.0.0.1" if host == "localhost" else host, 1234))
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    assert main(["serve", str(file), "--host", host]) == 0
    assert ("open to other computers" in capsys.readouterr().err) == warns


def test_answers_are_sent_without_delay() -> None:
    with open_listener("localhost", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio looks at


def test_without_the_libraries_it_says_how_to_get_them(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(file)]) == 2
    assert 'pip install "spacenet-cl[web]"' in capsys.readouterr().err
