"""A service behind a proxy that shows it below a path, as in https://example.org/spacenet."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from spacenet.errors import SettingsError
from spacenet.serve.access import FIRST_PARTS

ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def check_root_path(path: str) -> str:
    """A root path without its last slash. Those that begin like the service's own paths could not be told apart."""
    found = path.removesuffix("/")
    if found and not ROOT_PATH.fullmatch(found):
        raise SettingsError(f"{path!r} is not a path; give it as in /spacenet", setting="root_path")
    if found and found.split("/")[1] in FIRST_PARTS:
        reason = f"{path!r} begins like the service's own path /{found.split('/')[1]}; choose another"
        raise SettingsError(reason, setting="root_path")
    return found


class RootPath:
    """Gives requests the path that ASGI wants, with the root path in front, whether the proxy strips it or not."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app, self.root_path = app, root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = self.root_path
        if root:
            path, raw = scope["path"], scope.get("raw_path") or b""
            if path != root and not path.startswith(f"{root}/"):
                path, raw = root + path, root.encode() + raw
            scope = {**scope, "root_path": root, "path": path, "raw_path": raw}
        await self.app(scope, receive, send)
