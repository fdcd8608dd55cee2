"""What every request passes before it reaches an endpoint: log, names and origins, cross-origin sharing, tokens."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.serve.access import TokenCheck, Tokens
from spacenet.serve.hosts import HostCheck
from spacenet.serve.metrics import MeasureRequests, Metrics
from spacenet.serve.origins import CrossOrigin
from spacenet.serve.paths import RootPath
from spacenet.serve.request_log import RequestLog


@dataclass(frozen=True)
class Access:
    """Who may use the service, and how it is reached."""

    tokens: Tokens = field(default_factory=Tokens)
    origins: frozenset[str] = frozenset()
    """Of pages that may use it too."""
    root_path: str = ""
    """What a proxy shows it under."""
    log_requests: bool = False


class Gate:
    """The application behind all checks. Nothing but HTTP gets through."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], access: Access, metrics: Metrics) -> None:
        self.app = app
        checked: ASGIApp = TokenCheck(app, access.tokens)
        checked = CrossOrigin(checked, access.origins, may_teach=access.tokens.teaching is not None)
        checked = HostCheck(checked, hosts, access.origins)
        checked = RequestLog(checked) if access.log_requests else checked
        self.checked = RootPath(MeasureRequests(checked, metrics), access.root_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.checked(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})
