"""Who may do what: each method and path needs a permission, and tokens give permissions.

What is not in the table needs the permission to teach, so that an endpoint that was forgotten here is closed.
"""

import re
from dataclasses import dataclass
from typing import Literal

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.serve.refusals import find_header, refuse
from spacenet.serve.secrets import TokenFile

Permission = Literal["open", "reading", "teaching"]

OPEN = ("GET /health", "GET /v2/health/live", "GET /v2/health/ready")
"""For probes, which have no token."""
OF_A_MODEL = ("GET /model", "GET /watch", "GET /learn", "GET /jobs", "GET /jobs/{number}", "POST /predict")
V2_MODEL = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
READING = (
    *("GET /docs", "GET /openapi.json", "GET /metrics", "GET /models", "GET /v2", "GET /models/{name}/health"),
    *OF_A_MODEL,
    *(route.replace(" ", " /models/{name}", 1) for route in OF_A_MODEL),
    *(f"GET {model}{path}" for model in V2_MODEL for path in ("", "/ready", "/stats", "/config")),
    *(f"POST {model}/infer" for model in V2_MODEL),
)
STUDIO = (
    *("GET /", "GET /static/{file}", "GET /studio", "GET /studio/examples/{number}", "POST /studio/answer"),
    *("GET /studio/model.safetensors", "GET /studio/model.onnx"),
)
"""Of the page that `spacenet studio` adds to a service."""
CHANGES = ("POST /learn", "POST /edit", "DELETE /jobs/{number}")
TEACHING = (
    *CHANGES,
    *(route.replace(" ", " /models/{name}", 1) for route in CHANGES),
    *("POST /studio/start", "POST /studio/open", "POST /studio/learn", "POST /studio/examples"),
    *("DELETE /studio/examples", "DELETE /studio/examples/{number}"),
)
"""Named only so that a log can tell them apart."""


@dataclass(frozen=True)
class Rule:
    """What the requests of one method and path need; `path` has {name} where an address has a name."""

    method: str
    path: str
    permission: Permission


UNKNOWN = Rule("", "(unknown)", "teaching")


def _rules() -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    table: dict[Permission, tuple[str, ...]] = {"open": OPEN, "reading": (*READING, *STUDIO), "teaching": TEACHING}
    for permission, routes in table.items():
        for route in routes:
            method, path = route.split(" ")
            found[route] = Rule(method, path, permission)
    return found


RULES = _rules()
PATTERNS = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", route)), rule) for route, rule in RULES.items() if "{" in route]
FIRST_PARTS = frozenset(rule.path.split("/")[1] for rule in RULES.values())
"""The first parts of the service's own paths."""


def find_rule(method: str, path: str) -> Rule:
    """The rule for a request; `path` is the one that endpoints are chosen by."""
    asked = f"{'GET' if method == 'HEAD' else method} {path}"
    if rule := RULES.get(asked):
        return rule
    return next((rule for pattern, rule in PATTERNS if pattern.fullmatch(asked)), UNKNOWN)


def endpoint_path(scope: Scope) -> str:
    """The path of a request below the root path."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


@dataclass(frozen=True)
class Tokens:
    """The tokens that are asked for. Those for teaching may also read; without a file none is asked for."""

    reading: TokenFile | None = None
    teaching: TokenFile | None = None

    def needed_for(self, permission: Permission) -> bool:
        if permission == "open":
            return False
        return self.reading is not None or (permission == "teaching" and self.teaching is not None)

    def permission_of(self, token: bytes) -> Permission:
        """What a token permits; "open" if it is unknown."""
        if self.teaching and self.teaching.holds(token):
            return "teaching"
        return "reading" if self.reading and self.reading.holds(token) else "open"


class TokenCheck:
    """Answers 401 to requests without a token that is known, and 403 to those whose token permits less."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self.app, self.tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = find_rule(scope["method"], endpoint_path(scope)).permission
        if not self.tokens.needed_for(needed):
            await self.app(scope, receive, send)
            return
        token = _bearer(scope)
        given = self.tokens.permission_of(token) if token else "open"
        if given == "open":
            problem, error = "is not known", ', error="invalid_token"'
            if token is None:
                problem, error = "is missing: send the header Authorization: Bearer TOKEN", ""
            headers = {"www-authenticate": f'Bearer realm="spacenet"{error}'}
            await refuse(send, 401, f"the token {problem}", headers)
        elif needed == "teaching" and given == "reading":
            headers = {"www-authenticate": 'Bearer realm="spacenet", error="insufficient_scope"'}
            reason = "this token permits reading only; teaching needs one of --teach-token-file"
            await refuse(send, 403, reason, headers)
        else:
            await self.app(scope, receive, send)


def _bearer(scope: Scope) -> bytes | None:
    """The token of a request that has one."""
    values = find_header(scope, b"authorization")
    kind, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip().encode("latin-1") if kind.lower() == "bearer" else None
