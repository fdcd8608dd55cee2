"""Pages of other origins that are named may use the service: cross-origin resource sharing (CORS)."""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.errors import SettingsError
from spacenet.serve.access import endpoint_path, find_rule
from spacenet.serve.refusals import adding_headers, find_header, refuse

ORIGIN = re.compile(r"(https?)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, inference-header-content-length",
    "access-control-max-age": "600",
}
EXPOSED = {"access-control-expose-headers": "retry-after, inference-header-content-length"}


def check_origins(origins: Iterable[str]) -> set[str]:
    """Origins that the user names, as browsers write them: in small letters, without the default port."""
    return {_normalize(origin) for origin in origins}


def _normalize(origin: str) -> str:
    match = ORIGIN.fullmatch(origin.lower())
    if not match:
        reason = f"{origin!r} is not an origin; give it as in https://example.org or http://localhost:3000"
        raise SettingsError(reason, setting="allow_origin")
    return origin.lower().removesuffix(DEFAULT_PORTS[match[1]])


class CrossOrigin:
    """Lets browsers show answers to pages of the named origins. Without tokens such pages may only read."""

    def __init__(self, app: ASGIApp, origins: Iterable[str], may_teach: bool) -> None:
        self.app, self.origins, self.may_teach = app, frozenset(origins), may_teach

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.origins:
            await self.app(scope, receive, send)
            return
        origins = find_header(scope, b"origin")
        named = len(origins) == 1 and origins[0] in self.origins
        headers = {"vary": "origin"}
        if named:
            headers["access-control-allow-origin"] = origins[0]
        if named and scope["method"] == "OPTIONS" and find_header(scope, b"access-control-request-method"):
            await _answer_preflight(adding_headers(send, headers | PREFLIGHT))
            return
        send = adding_headers(send, headers | EXPOSED if named else headers)
        if named and not self.may_teach and self._teaches(scope):
            await refuse(send, 403, "pages of other origins may teach only with a token; see --teach-token-file")
        else:
            await self.app(scope, receive, send)

    def _teaches(self, scope: Scope) -> bool:
        return find_rule(scope["method"], endpoint_path(scope)).permission == "teaching"


async def _answer_preflight(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
