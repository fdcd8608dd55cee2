"""Pages in a real browser: what a page of another origin can do to a service on this computer, and what it cannot."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spacenet.serve.gate import Access
from tests.browsers import needs_browser, open_browser
from tests.serve.live import Live, live

pytestmark = needs_browser

FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.type, answer.status, await answer.text()];
  } catch (error) { return ["failed", 0, ""]; }
}"""
EMBED = """([kind, url]) => new Promise((resolve) => {
  const element = document.createElement(kind);
  element.onload = () => resolve(kind == "iframe" ? "loaded, of unknown content" : "loaded");
  element.onerror = () => resolve("failed");
  if (kind == "link") { element.rel = "stylesheet"; element.href = url; } else { element.src = url; }
  document.body.append(element);
  setTimeout(() => resolve("nothing"), 3000);
})"""
POST_FORM = """([url, kind, text]) => new Promise((resolve) => {
  const frame = document.createElement("iframe"), form = document.createElement("form");
  frame.name = "target" + Math.random();
  Object.assign(form, {action: url, method: "post", enctype: kind, target: frame.name});
  const field = document.createElement("textarea");
  field.name = text; form.append(field); document.body.append(frame, form);
  frame.onload = () => resolve(true);
  form.submit();
  setTimeout(() => resolve(false), 3000);
})"""


class _Page(BaseHTTPRequestHandler):
    """The page of another origin: nothing but a place for scripts."""

    def do_GET(self) -> None:
        content = b"<!doctype html><title>other</title><body></body>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _pages() -> Iterator[str]:
    """The origin of a web server on this computer."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with _pages() as origin:
        yield origin


@pytest.fixture(scope="module")
def page(pages: str) -> Iterator[Any]:
    with open_browser() as browser:
        page = browser.new_context().new_page()
        page.goto(pages)
        yield page


def _address(it: Live) -> str:
    return f"http://127.0.0.1:{it.address[1]}"


TASK = json.dumps({"inputs": [[0.5] * 8, [1.5] * 8], "labels": ["cat", "dog"]})
CHANGES = [("POST", "/learn"), ("POST", "/models/model/learn"), ("POST", "/edit"), ("DELETE", "/jobs/1")]
READS = ["/health", "/model", "/models", "/metrics", "/docs", "/openapi.json", "/jobs", "/v2"]


class _Arrived(logging.Handler):
    """The requests that the service has answered: else a browser that sent none would pass."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: dict[str, set[int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        facts = record.__dict__["facts"]
        self.statuses.setdefault(f"{facts['method']} {facts['path']}", set()).add(facts["status"])


@pytest.fixture(scope="module")
def arrived() -> Iterator[_Arrived]:
    handler, logger = _Arrived(), logging.getLogger("spacenet.requests")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacenet.serve.logs.PER_PERIOD", 10**6)
        yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, page: Any, arrived: _Arrived) -> Iterator[Live]:
    """A service as `spacenet serve MODEL --allow-learn` starts it, which the tests leave as it is."""
    with live(tmp_path_factory.mktemp("attacked"), learns=True, access=Access(log_requests=True)) as it:
        content = it.it.store.path.read_bytes()
        yield it
        assert it.ask()[0] == 200
        assert _untaught(it), "a page of another origin has taught it"
        assert it.it.store.path.read_bytes() == content


def _untaught(it: Live) -> bool:
    jobs = it.it.models.default.jobs
    assert jobs is not None
    return not jobs.list()


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/x-www-form-urlencoded"])
def test_fetch_changes_nothing(attacked: Live, page: Any, arrived: _Arrived, kind: str) -> None:
    arrived.statuses.clear()
    for method, path in CHANGES:
        for mode in ("cors", "no-cors"):
            options = {"method": method, "mode": mode, "body": TASK, "headers": {"content-type": kind}}
            options |= {"credentials": "include"}
            found = page.evaluate(FETCH, [_address(attacked) + path, options])
            assert found in (["failed", 0, ""], ["opaque", 0, ""]), (path, mode)
    assert arrived.statuses
    assert set.union(*arrived.statuses.values()) == {403}


def test_forms_and_beacons_change_nothing(attacked: Live, page: Any, arrived: _Arrived) -> None:
    arrived.statuses.clear()
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        for path in ("/learn", "/edit", "/predict"):
            page.evaluate(POST_FORM, [_address(attacked) + path, kind, TASK])
    for kind in ("text/plain", "application/json"):
        sent = f"navigator.sendBeacon(url, new Blob([text], {{type: '{kind}'}}))"
        page.evaluate(f"([url, text]) => {sent}", [f"{_address(attacked)}/learn", TASK])
    assert {arrived.statuses[f"POST {path}"] == {403} for path in ("/learn", "/edit", "/predict")} == {True}


def test_nothing_can_be_read(attacked: Live, page: Any) -> None:
    for path in READS:
        for mode in ("cors", "no-cors"):
            found = page.evaluate(FETCH, [_address(attacked) + path, {"mode": mode}])
            assert found in (["failed", 0, ""], ["opaque", 0, ""]), (path, mode)
    body = {"method": "POST", "body": '{"inputs": [[1,2,3,4,5,6,7,8]]}'}
    for kind in ("application/json", "text/plain"):
        options = {**body, "headers": {"content-type": kind}}
        assert page.evaluate(FETCH, [f"{_address(attacked)}/predict", options]) == ["failed", 0, ""]


def test_nothing_can_be_embedded(attacked: Live, page: Any) -> None:
    """Not even whether something is there: what exists and what does not look the same."""
    for path in ("/metrics", "/docs", "/nowhere"):
        for kind in ("img", "script", "link"):
            assert page.evaluate(EMBED, [kind, _address(attacked) + path]) == "failed", (kind, path)
    frame = page.evaluate(EMBED, ["iframe", f"{_address(attacked)}/docs"])
    assert frame in ("loaded, of unknown content", "failed", "nothing")  # the refusal, which the page cannot read
    assert page.evaluate("() => { try { return frames[0].document.body.textContent } catch { return null } }") is None


def test_a_page_cannot_use_a_name_of_its_own(attacked: Live, page: Any) -> None:
    """Of DNS rebinding the service sees the name: here one that Chromium takes for this computer."""
    other = page.context.new_page()
    answer = other.goto(f"http://evil.localhost:{attacked.address[1]}/model")
    assert answer.status == 421
    assert "spacenet" not in other.title()
    other.close()


def test_a_named_origin_may_read_but_not_teach(tmp_path: Path, page: Any, pages: str) -> None:
    with live(tmp_path, learns=True, access=Access(origins=frozenset({pages}))) as it:
        kind, status, text = page.evaluate(FETCH, [f"{_address(it)}/model", {}])
        assert (kind, status, json.loads(text)["tasks"]) == ("cors", 200, [[0, 1], [2, 3]])
        options = {"method": "POST", "headers": {"content-type": "application/json"}}
        asked = {**options, "body": '{"inputs": [[1,2,3,4,5,6,7,8]]}'}
        assert page.evaluate(FETCH, [f"{_address(it)}/predict", asked])[:2] == ["cors", 200]
        taught = page.evaluate(FETCH, [f"{_address(it)}/learn", {**options, "body": TASK}])
        assert taught[:2] == ["cors", 403]
        assert _untaught(it)
    with live(tmp_path, learns=True) as it:  # the same page without a name
        assert page.evaluate(FETCH, [f"{_address(it)}/model", {}]) == ["failed", 0, ""]
