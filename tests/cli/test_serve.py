"""`spacenet serve` as a process of its own, at a free port of this computer."""

import json
import logging
import re
import signal
import socket
import ssl
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
from spacenet.model.watching import load_watch
from spacenet.serve.jobs import Jobs
from spacenet.serve.store import Store
from tests.model.support import blobs, density_model, model
from tests.serve.certificates import make_certificate
from tests.serve.tokens import READING, TEACHING, bearer, token_file
from tests.warm import start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model(path, model())
    return path


@contextmanager
def _server(
    file: Path, *others: str, files: int | None = None, options: Sequence[str] = ()
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = ["spacenet", "serve", str(file), *others, "--port", "0", "--allow-learn", *options]
    with start(command, files=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"at (https?://127\.0\.0\.1:\d+) ", process.stdout.readline())
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
        assert httpx.post(f"{address}/edit", json={"action": "rename", "label": 0, "new": 7}).status_code == 202
        learner = _learner(process)
        process.kill()
        process.wait()
        assert len(list(file.parent.glob(".*.job-*"))) == 2
        learner.wait(timeout=20)  # goes with its service
    assert file.read_bytes() == content
    with _server(file) as (process, address):
        assert httpx.get(f"{address}/health").json()["tasks"] == 2
        # It would learn the task: see `tests.campaigns.killed_changes`. Here that would only take time.
        assert httpx.get(f"{address}/jobs/1").json()["state"] == "running"
        assert httpx.delete(f"{address}/jobs/1").json()["state"] == "canceled"
        assert _ended(address, 2)["state"] == "done"
        assert httpx.get(f"{address}/model").json()["tasks"] == [[7, 1], [2, 3]]
        assert httpx.post(f"{address}/predict", content=b" " * 17 * 2**20).status_code == 413
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "stopped\n", "")
    assert load_model(file).tasks == [(7, 1), (2, 3)]
    assert sorted(each.name for each in file.parent.glob(f"*{file.name}*")) == [
        file.name,
        f"{file.name}.jobs.json",
        f"{file.name}.undo",
    ]


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


def test_tokens_tls_a_root_path_and_the_log(file: Path, tmp_path: Path) -> None:
    """All at once, in a process of its own: what is printed, who gets in, and what is written."""
    logging.getLogger("spacenet.requests.refused").filters.clear()  # what earlier tests were refused does not count
    read, teach = token_file(tmp_path / "read", READING), token_file(tmp_path / "teach", TEACHING)
    certificate, key = make_certificate(tmp_path)
    options = ["--token-file", read, "--teach-token-file", teach, "--certificate", certificate, "--key", key]
    options += ["--root-path", "/a", "--allow-origin", "https://b.example"]
    options += ["--log-requests", "--log-format", "json", "--log-file", tmp_path / "log"]
    with _server(file, options=list(map(str, options))) as (process, address):
        assert process.stdout is not None
        said = process.stdout.readline()
        assert address.startswith("https://")
        assert all(
            each in said for each in (f"reading needs a token of {read}", f"of {teach}", "under /a", "b.example")
        )
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(verify=trusted, base_url=address) as client:
            statuses = [client.get(path).status_code for path in ("/health", "/a/health", "/model")]
            statuses.append(client.get("/a/model", headers=bearer(READING)).status_code)
            statuses.append(client.post("/a/learn", headers=bearer(READING)).status_code)
        assert statuses == [200, 200, 401, 200, 403]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "stopped\n", "")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [each["status"] for each in lines if "status" in each] == statuses
    assert READING not in (tmp_path / "log").read_text()


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
        (["FILE", "--token-file", "nowhere"], "token-file: cannot read nowhere"),
        (["FILE", "--token-file", "SECRET"], "line 1 is shorter than 16 characters; make one with: openssl"),
        (["FILE", "--teach-token-file", "nowhere"], "teach-token-file: cannot read nowhere"),
        (["FILE", "--token-file", "TOKENS", "--teach-token-file", "TOKENS"], "which would let it teach"),
        (["FILE", "--token-file", "TOKENS", "--allow-learn"], "with --allow-learn give --teach-token-file too"),
        (["FILE", "--allow-origin", "*"], "allow-origin: '*' is not an origin"),
        (["FILE", "--root-path", "spacenet"], "root-path: 'spacenet' is not a path"),
        (["FILE", "--certificate", "nowhere"], "give --certificate and --key together"),
        (["FILE", "--certificate", "nowhere", "--key", "nowhere"], "certificate: cannot read nowhere"),
        (["FILE", "--max-connections", "1000000000"], "max-connections: 1000000000 are too many"),
        (["FILE", "--max-requests", "0"], "max-requests: 0"),
        (["FILE", "--timeout", "0"], "timeout: 0"),
        (["FILE", "other/model.safetensors"], "two models are called 'model'"),
        (["FILE", "other=nowhere"], "nowhere: no such file"),
        (["FILE", "a b=FILE"], "'a b' cannot name a model"),
        (["FILE", "--unknown", "5"], "unknown: the fraction of samples of known classes"),
        (["FILE", "--log-format", "xml"], "log-format: unknown value 'xml'"),
        (["FILE", "--log-file", "nowhere/log"], "log-file: cannot write nowhere/log"),
    ],
)
def test_what_cannot_work_is_said(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"FILE": file, "SECRET": token_file(file.parent / "secret", "a secret"[2:])}
    files["TOKENS"] = token_file(file.parent / "tokens", READING)
    with pytest.raises(SystemExit) as info:
        sys.exit(main(["serve", *(str(files.get(word, word)) for word in arguments)]))
    said = capsys.readouterr().err
    assert (info.value.code, words in said, "Traceback" in said) == (2, True, False), said


@pytest.mark.parametrize(
    ("host", "options", "words"),
    [
        ("127.0.0.1", [], None),
        ("localhost", ["--allow-learn"], None),
        ("0.0.0.0", [], "open to other computers, and all of them may read; see --token-file"),
        ("0.0.0.0", ["--allow-learn"], "could teach the model; give --teach-token-file FILE (or --insecure"),
        ("0.0.0.0", ["--allow-learn", "--insecure"], "all of them may read and teach"),
        ("0.0.0.0", ["--allow-learn", "--teach-token-file", "TEACH"], "all of them may read;"),
        ("0.0.0.0", ["--allow-learn", "--teach-token-file", "TEACH", "--token-file", "READ"], "sent unencrypted"),
    ],
)
def test_what_is_said_where_others_can_get_in(
    file: Path,
    host: str,
    options: Sequence[str],
    words: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = {"READ": token_file(file.parent / "read", READING), "TEACH": token_file(file.parent / "teach", TEACHING)}
    listen = socket.create_server
    # Never really at that address: only what is said about it is tested.
    monkeypatch.setattr("socket.create_server", lambda address, **rest: listen(("127.0.0.1", 0), **rest))
    monkeypatch.setattr("socket.socket.getsockname", lambda self: ("127.0.0.1" if host == "localhost" else host, 1234))
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    code = main(["serve", str(file), "--host", host, *(str(tokens.get(word, word)) for word in options)])
    out, err = capsys.readouterr()
    assert code == (2 if words and "could teach" in words else 0)
    assert (words in err) if words else err == ""
    assert READING not in out + err


def test_several_models_are_served_and_watched(file: Path) -> None:
    tells = file.with_name("tells.safetensors")
    save_model(tells, density_model("inputs"))
    with _server(file, f"second={tells}", options=("--unknown", "0.05")) as (process, address):
        assert [each["name"] for each in httpx.get(f"{address}/models").json()["models"]] == ["model", "second"]
        assert process.stdout is not None
        assert f"at {address}/models/second" in process.stdout.readline()
        body = {"inputs": [[0.5] * 8, [1e10] * 8]}
        found = httpx.post(f"{address}/models/second/predict", json=body).json()["predictions"]
        assert found[1]["unknown"]
        assert "unknown" not in httpx.post(f"{address}/predict", json=body).json()["predictions"][0]
        assert "spacenet_open_connections" in httpx.get(f"{address}/metrics").text
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, "stopped\n")
        assert re.fullmatch(r"\S+ warning \S+ cannot tell unknown inputs, it is of spacenet\n", err)
    kept = load_watch(tells)
    assert kept is not None
    assert kept.summary().samples == 2
    assert load_watch(file) is None


def test_answers_are_sent_without_delay() -> None:
    with open_listener("localhost", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio looks at


def test_without_the_libraries_it_says_how_to_get_them(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(file)]) == 2
    assert 'pip install "spacenet-cl[web]"' in capsys.readouterr().err
