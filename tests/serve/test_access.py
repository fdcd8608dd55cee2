"""Who may do what: the table of permissions, and tokens on the way to each endpoint."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Route

from spacenet.serve.access import RULES, UNKNOWN, find_rule
from tests.serve.support import Service
from tests.serve.tokens import READING, TEACHING, bearer, guarded_service, token_file

BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8]}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with guarded_service(tmp_path_factory.mktemp("guarded")) as it:
        yield it


def _routes(it: Service) -> list[tuple[str, str]]:
    found = [each for each in it.app.routes if isinstance(each, (Route, APIRoute))]
    return [(method, each.path) for each in found for method in sorted(each.methods or ())]


def test_the_table_knows_every_endpoint(guarded: Service) -> None:
    """What it does not know is closed to those who may only read, which would be a surprise."""
    for method, path in _routes(guarded):
        rule = find_rule(method, path.replace("{name}", "model").replace("{number}", "7"))
        assert rule is not UNKNOWN, (method, path)
        assert rule.path == path


def test_what_changes_something_is_teaching() -> None:
    reading = {"/predict", "/infer", "/answer"}
    for rule in RULES.values():
        changes = rule.method not in ("GET", "HEAD") and not any(rule.path.endswith(each) for each in reading)
        assert (rule.permission == "teaching") == changes, rule


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/health", "open"),
        ("HEAD", "/health", "open"),
        ("POST", "/health", "teaching"),
        ("GET", "/v2/health/ready", "open"),
        ("GET", "/metrics", "reading"),
        ("POST", "/predict", "reading"),
        ("POST", "/models/a.b-c/predict", "reading"),
        ("POST", "/v2/models/a/versions/3/infer", "reading"),
        ("POST", "/learn", "teaching"),
        ("POST", "/models/predict/learn", "teaching"),
        ("POST", "/models/predict/edit", "teaching"),
        ("DELETE", "/jobs/7", "teaching"),
        ("GET", "/jobs/7", "reading"),
        ("GET", "/nowhere", "teaching"),
        ("POST", "/predict/", "teaching"),
        ("POST", "/predict\n", "teaching"),
        ("GET", "/health\n", "teaching"),
        ("POST", "/models/a/b/predict", "teaching"),
        ("POST", "//predict", "teaching"),
        ("POST", "/PREDICT", "teaching"),
        ("post", "/predict", "teaching"),
        ("GET", "/studio", "reading"),
        ("POST", "/studio/examples", "teaching"),
        ("GET", "/studio/forgotten", "teaching"),
    ],
)
def test_what_each_request_needs(method: str, path: str, permission: str) -> None:
    assert find_rule(method, path).permission == permission


def test_every_endpoint_asks_for_its_token(guarded: Service) -> None:
    for method, path in _routes(guarded):
        needed = find_rule(method, path).permission
        where = path.replace("{name}", "model").replace("{number}", "7")
        asked = {token: guarded.ask(method, where, headers=bearer(token)) for token in ("wrong", READING)}
        none = guarded.ask(method, where)
        statuses = [none.status_code, asked["wrong"].status_code, asked[READING].status_code]
        if needed == "open":
            assert statuses == [200, 200, 200], where
        else:
            assert statuses[:2] == [401, 401], where
            assert (statuses[2] == 403) == (needed == "teaching"), where
            assert none.headers["www-authenticate"] == 'Bearer realm="spacenet"'
            assert "invalid_token" in asked["wrong"].headers["www-authenticate"]


def test_tokens_permit_what_they_are_for(guarded: Service) -> None:
    for token, learn in ((READING, 403), (TEACHING, 422)):
        assert guarded.post("/predict", headers=bearer(token), **BODY).status_code == 200
        assert guarded.post("/models/model/predict", headers=bearer(token), **BODY).status_code == 200
        answer = guarded.post("/learn", headers=bearer(token), json={"inputs": [], "labels": []})
        assert answer.status_code == learn
    refused = guarded.post("/learn", headers=bearer(READING))
    assert "reading only" in refused.json()["error"]
    assert "insufficient_scope" in refused.headers["www-authenticate"]
    assert guarded.ask("GET", "/nowhere", headers=bearer(TEACHING)).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": READING},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {READING}"},
        {"authorization": f"Bearer {READING}, Bearer {READING}"},
        {"authorization": f"Bearer {READING}é".encode("latin-1")},
        [("authorization", f"Bearer {READING}"), ("authorization", f"Bearer {READING}")],
        {"cookie": f"token={READING}"},
    ],
)
def test_only_one_proper_header_counts(guarded: Service, headers: Any) -> None:
    assert guarded.ask("GET", "/model", headers=headers).status_code == 401


def test_a_token_in_the_query_does_not_count_and_is_not_shown(guarded: Service) -> None:
    answer = guarded.ask("GET", f"/model?token={READING}&access_token={READING}")
    assert (answer.status_code, READING in answer.text) == (401, False)


def test_schemes_are_written_in_any_case(guarded: Service) -> None:
    assert guarded.ask("GET", "/model", headers={"authorization": f"bearer   {READING}"}).status_code == 200


def test_tokens_are_exchanged_while_it_runs(guarded: Service, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = guarded.store.path.parent / "reading"
    token_file(file, READING, "another-token-0123")
    assert guarded.ask("GET", "/model", headers=bearer("another-token-0123")).status_code == 200
    token_file(file, READING)
    assert guarded.ask("GET", "/model", headers=bearer("another-token-0123")).status_code == 401
