"""Requests are answered only under the service's own names, and not for pages of other origins.

A page in a browser can point a name of its own at this computer and then send requests as if to itself. Its name is in
the `Host` and `Origin` of these requests, which is how they are recognized.
"""

import ipaddress
import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.errors import SettingsError
from spacenet.serve.origins import DEFAULT_PORTS
from spacenet.serve.refusals import adding_headers, find_header, refuse, show

OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")
NAME = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
NOT_FOR_OTHERS = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"}
"""What makes browsers keep answers from pages of other origins, whatever these take them for."""


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
    """Answers 421 to a foreign `Host` and 403 to pages of a foreign origin, before anything else sees the request."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        self.app, self.hosts, self.origins = app, frozenset(hosts), frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = adding_headers(send, NOT_FOR_OTHERS)
        if problem := self._problem(scope):
            await refuse(send, *problem)
        else:
            await self.app(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        names = find_header(scope, b"host")
        scheme = scope.get("scheme", "http")
        if len(names) != 1 or not self._allowed(names[0], scheme, scope):
            return 421, f"this service is not called {show(names)}; it can be started with --allow-host NAME"
        origins = find_header(scope, b"origin")
        if any(origin not in self.origins and not self._own_origin(origin, scope) for origin in origins):
            return 403, f"requests of pages at {show(origins)} are refused; see --allow-origin ORIGIN"
        if not origins and _embedded_elsewhere(scope):
            return 403, "requests of pages of other sites are refused; see --allow-origin ORIGIN"
        return None

    def _own_origin(self, origin: str, scope: Scope) -> bool:
        scheme, _, host = origin.lower().partition("://")
        schemes = {"https"} if scope.get("scheme") == "https" else {"http", "https"}  # https: of a proxy
        return scheme in schemes and self._allowed(host, scheme, scope)

    def _allowed(self, host: str, scheme: str, scope: Scope) -> bool:
        host = host.lower()
        if not (match := NAME.fullmatch(host)):
            return False
        port = match[2] or DEFAULT_PORTS[scheme]
        return not self.hosts.isdisjoint((match[1], match[1] + port)) or match[1] + port == _reached_at(scope)


def _embedded_elsewhere(scope: Scope) -> bool:
    """Whether a page of another origin loads this as an image, a script, a frame or the like: browsers say so.

    A link that somebody follows is none of these: the page that it is on cannot see the answer.
    """
    if not {"cross-site", "same-site"}.intersection(find_header(scope, b"sec-fetch-site")):
        return False
    kind = find_header(scope, b"sec-fetch-mode"), find_header(scope, b"sec-fetch-dest")
    return scope["method"] not in ("GET", "HEAD") or kind != (["navigate"], ["document"])


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
