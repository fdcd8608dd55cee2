"""The log of requests: one line for each that was answered.

It has facts and no contents: no bodies, no query strings, no tokens, and of addresses the form, as in
/models/{name}/predict. So a line holds nothing that a client could make up, except for the name of a model that exists.
"""

import logging
import time
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spacenet.serve.access import endpoint_path, find_rule

ANSWERED = logging.getLogger("spacenet.requests")
REFUSED = logging.getLogger("spacenet.requests.refused")
"""Anybody can send requests that are refused, as many as they like: what repeats is counted."""
FACTS: ContextVar[dict[str, Any]] = ContextVar("FACTS")
METHODS = {"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"}


class RequestLog:
    """Writes a line for each request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.perf_counter(), 500
        facts: dict[str, Any] = {}
        FACTS.set(facts)  # endpoints note there what they know

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            _write(scope, status, 1000 * (time.perf_counter() - began), facts)


def note(**facts: Any) -> None:
    """Note facts of the request that is in work here, as its model or samples, if there is a log of requests."""
    if (known := FACTS.get(None)) is not None:
        known.update(facts)


def method_name(scope: Scope) -> str:
    """The method of a request, if it is one that exists."""
    return scope["method"] if scope["method"] in METHODS else "(other)"


def _write(scope: Scope, status: int, milliseconds: float, noted: dict[str, Any]) -> None:
    method = method_name(scope)
    path = find_rule(scope["method"], endpoint_path(scope)).path
    facts = {"method": method, "path": path, "status": status, "milliseconds": round(milliseconds, 3)}
    facts |= {**noted, "client": (scope.get("client") or ("unknown",))[0]}
    log, level = (ANSWERED, logging.INFO) if status < 400 else (REFUSED, logging.WARNING)
    log.log(level, f"{method} {path} {status}", extra={"facts": facts})
