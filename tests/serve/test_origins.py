"""Pages of other origins: those that are named may read, and teach with a token; others may nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacenet.errors import SettingsError
from spacenet.serve.gate import Access
from spacenet.serve.origins import check_origins
from tests.serve.support import HOST, Service, service
from tests.serve.tokens import TEACHING, bearer, both_tokens

NAMED, FOREIGN = "https://pages.example", "https://evil.example"
BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8]}}
ALLOW = "access-control-allow-origin"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("served"), learns=True, access=Access(origins=frozenset({NAMED}))) as it:
        yield it


def _preflight(it: Service, origin: str, method: str = "POST") -> Any:
    headers = {"origin": origin, "access-control-request-method": method}
    return it.ask("OPTIONS", "/predict", headers=headers)


def test_pages_of_a_named_origin_may_read(served: Service) -> None:
    first = _preflight(served, NAMED)
    assert (first.status_code, first.content) == (204, b"")
    assert first.headers[ALLOW] == NAMED
    assert "authorization" in first.headers["access-control-allow-headers"]
    assert "POST" in first.headers["access-control-allow-methods"]
    for answer in (
        served.post("/predict", headers={"origin": NAMED}, **BODY),
        served.ask("GET", "/model", headers={"origin": NAMED}),
        served.ask("POST", "/predict", headers={"origin": NAMED}, content=b"[" * 9),
    ):
        assert (answer.headers[ALLOW], answer.headers["vary"]) == (NAMED, "origin")
        assert "access-control-allow-credentials" not in answer.headers


def test_other_pages_get_nothing(served: Service) -> None:
    for origin in (FOREIGN, "null", NAMED + ".evil.example", "http://pages.example", NAMED + ":444"):
        for answer in (
            _preflight(served, origin),
            served.post("/predict", headers={"origin": origin}, **BODY),
            served.ask("GET", "/metrics", headers={"origin": origin}),
        ):
            assert (answer.status_code, ALLOW in answer.headers) == (403, False), origin


def test_requests_of_no_page_and_of_own_pages_are_answered_as_ever(served: Service) -> None:
    for headers in ({}, {"origin": f"http://{HOST}"}):
        answer = served.ask("GET", "/model", headers=headers)
        assert (answer.status_code, ALLOW in answer.headers, answer.headers["vary"]) == (200, False, "origin")


def test_teaching_from_a_named_origin_needs_a_token(served: Service, tmp_path: Path) -> None:
    task: dict[str, Any] = {"json": {"inputs": [], "labels": []}}
    refused = served.post("/learn", headers={"origin": NAMED}, **task)
    assert (refused.status_code, refused.headers[ALLOW]) == (403, NAMED)
    assert "only with a token" in refused.json()["error"]
    with service(tmp_path, learns=True, access=Access(both_tokens(tmp_path), frozenset({NAMED}))) as it:
        assert _preflight(it, NAMED).status_code == 204  # browsers send it without a token
        headers = {"origin": NAMED}
        lacking = it.post("/learn", headers=headers, **task)
        assert (lacking.status_code, lacking.headers[ALLOW]) == (401, NAMED)
        assert it.post("/learn", headers=headers | bearer(TEACHING), **task).status_code == 422
        assert it.ask("GET", "/health", headers=headers).headers[ALLOW] == NAMED


@pytest.mark.parametrize("path", ["/metrics", "/model", "/health", "/docs"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_other_pages_embed_is_refused(served: Service, path: str, site: str) -> None:
    for mode, dest in (("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe"), ("no-cors", "empty")):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        answer = served.ask("GET", path, headers=headers)
        assert (answer.status_code, answer.headers["cross-origin-resource-policy"]) == (403, "same-origin")


def test_a_link_to_the_service_can_be_followed(served: Service) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert served.ask("GET", "/docs", headers=followed).status_code == 200
    assert served.ask("POST", "/predict", headers=followed, **BODY).status_code == 403
    for site in ("same-origin", "none"):
        assert served.ask("GET", "/docs", headers={"sec-fetch-site": site}).status_code == 200


def test_no_answer_is_taken_for_something_else(served: Service) -> None:
    for path in ("/health", "/docs", "/nowhere"):
        assert served.ask("GET", path).headers["x-content-type-options"] == "nosniff"


def test_origins_are_written_as_browsers_do() -> None:
    given = ["https://Example.org:443", "http://localhost:3000", "http://[::1]:80"]
    assert check_origins(given) == {"https://example.org", "http://localhost:3000", "http://[::1]"}


@pytest.mark.parametrize(
    "origin", ["*", "null", "", "example.org", "https://a/", "ftp://a", "https://a b", "https://*.a"]
)
def test_what_is_no_origin_is_said(origin: str) -> None:
    with pytest.raises(SettingsError, match="is not an origin"):
        check_origins([origin])
