"""Requests are answered only under the service's own names.

A page in a browser can point a name of its own at this computer and then send requests as if to itself. Its name is in
the `Host` and `Origin` of these requests, which is how they are recognized.
"""

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.errors import SettingsError

OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")
NAME = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def own_hosts(address: str, port: int) -> set[str]:
    """What a service at this address and port is called by default, in the form of a `Host` header."""
    return {f"{name}:{port}" for name in (*OWN_NAMES, _bracketed(address))}


def check_names(names: Iterable[str]) -> set[str]:
    """Names that the user allows, each with its port or with any; a bare IPv6 address gets its brackets."""
    checked = {_bracketed(name.lower()) for name in names}
    for name in sorted(checked):
        if not NAME.fullmatch(name):
            reason = f"{name!r} is not the name of a host; give it without http://, as in example.org or 10.0.0.5:8000"
            raise SettingsError(reason, setting="allow_host")
    return checked


class HostCheck:
    """Answers 421 to a foreign `Host` and 403 to a foreign `Origin`, before any endpoint sees the request."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app, self.hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (problem := self._problem(scope)):
            await _refuse(send, *problem)
        else:
            await self.app(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        names = [value.decode("latin-1") for key, value in scope["headers"] if key == b"host"]
        if len(names) != 1 or not self._allowed(names[0], "http", scope):
            return 421, f"this service is not called {_shown(names)}; it can be started with --allow-host NAME"
        origins = [value.decode("latin-1") for key, value in scope["headers"] if key == b"origin"]
        if any(not self._own_origin(origin, scope) for origin in origins):
            return 403, f"requests of pages at {_shown(origins)} are refused; see --allow-host NAME"
        return None

    def _own_origin(self, origin: str, scope: Scope) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme.lower() in DEFAULT_PORTS and self._allowed(host, scheme.lower(), scope)

    def _allowed(self, host: str, scheme: str, scope: Scope) -> bool:
        host = host.lower()
        if not (match := NAME.fullmatch(host)):
            return False
        port = match[2] or DEFAULT_PORTS[scheme]
        return not self.hosts.isdisjoint((match[1], match[1] + port)) or match[1] + port == _reached_at(scope)


def _reached_at(scope: Scope) -> str | None:
    """The address that the client connected to: a service at 0.0.0.0 has several. Only a name could be another's."""
    address, port = scope.get("server") or ("", None)
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return None
    return f"{_bracketed(address)}:{port}"


def _bracketed(name: str) -> str:
    try:
        return f"[{name}]" if ipaddress.ip_address(name).version == 6 else name
    except ValueError:
        return name


def _shown(names: Sequence[str]) -> str:
    return ", ".join(repr(name[:100]) for name in names[:3]) or "nothing"


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
