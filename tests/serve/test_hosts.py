"""Requests under another name are refused: a page of that name would be behind them."""

from collections.abc import Iterator
from typing import Any

import pytest

from spacenet.errors import SettingsError
from spacenet.serve.hosts import HostCheck, check_names, own_hosts
from tests.serve.support import HOST, Service, service

ENDPOINTS = [("GET", path) for path in ("/health", "/model", "/learn", "/docs", "/openapi.json", "/nowhere")]
ENDPOINTS += [("POST", "/predict"), ("POST", "/learn")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("served"), learns=True) as it:
        yield it


@pytest.mark.parametrize(("verb", "path"), ENDPOINTS)
def test_every_endpoint_refuses_foreign_names(served: Service, verb: str, path: str) -> None:
    request: dict[str, Any] = {"json": {"inputs": [[0.5] * 8], "labels": ["a"]}} if verb == "POST" else {}
    for headers, status in (
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:8000", "origin": "http://evil.example:8000"}, 421),
        ({"host": "localhost:8000.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ):
        answer = served.ask(verb, path, headers=headers, **request)
        assert answer.status_code == status, headers
        assert answer.json()["error"]
    assert served.get("/learn")["state"] == "none"


def test_own_names_are_answered(served: Service) -> None:
    for headers in ({}, {"origin": f"http://{HOST}"}, {"host": "LOCALHOST:8000"}):
        assert served.ask("GET", "/health", headers=headers).status_code == 200


def _problem(hosts: set[str], server: tuple[str, int], **headers: str) -> int | None:
    scope = {"type": "http", "server": server, "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
    found = HostCheck(lambda *_: None, hosts)._problem(scope)  # type: ignore[arg-type]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("localhost:8000", None),
        ("127.0.0.1:8000", None),
        ("[::1]:8000", None),
        ("10.0.0.5:8000", None),
        ("localhost", 421),
        ("localhost:8001", 421),
        ("localhost.:8000", 421),
        ("10.0.0.6:8000", 421),
        ("user@localhost:8000", 421),
    ],
)
def test_names_count_with_their_port(host: str, problem: int | None) -> None:
    assert _problem(own_hosts("0.0.0.0", 8000), ("10.0.0.5", 8000), host=host) == problem


def test_a_name_that_was_allowed_without_a_port_counts_with_any() -> None:
    hosts = own_hosts("127.0.0.1", 80) | check_names(["Models.example", "other.example:81", "fe80::1"])
    at = ("127.0.0.1", 80)
    for host in ("models.example", "models.example:443", "other.example:81", "[fe80::1]:9", "localhost"):
        assert _problem(hosts, at, host=host) is None
    assert _problem(hosts, at, host="other.example") == 421
    assert _problem(hosts, at, host="localhost", origin="https://models.example") is None
    assert _problem(hosts, at, host="localhost", origin="https://localhost") == 403
    assert _problem(hosts, at, host="localhost", origin="ftp://models.example") == 403


@pytest.mark.parametrize("name", ["", "http://a", "a/b", "*", "a:b", "a b"])
def test_what_is_no_name_is_said(name: str) -> None:
    with pytest.raises(SettingsError, match="not the name of a host"):
        check_names([name])
