"""What middleware needs: headers of a request, and a response that refuses it."""

import json
from collections.abc import Mapping, Sequence

from starlette.types import Message, Scope, Send


def find_header(scope: Scope, name: bytes) -> list[str]:
    """All values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def show(names: Sequence[str]) -> str:
    """What a client sent, at a length that a message can hold."""
    return ", ".join(repr(name[:100]) for name in names[:3]) or "nothing"


async def refuse(send: Send, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
    """Answer with the reason in the form of `messages.Problem`."""
    body = json.dumps({"error": reason}).encode()
    facts = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": _encode(facts)})
    await send({"type": "http.response.body", "body": body})


def adding_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """Send a response with more headers, those that it has already excepted."""
    more = _encode(headers)

    async def send_with_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = list(message.get("headers", ()))
            names = {name.lower() for name, _ in known}
            message = {**message, "headers": known + [each for each in more if each[0] not in names]}
        await send(message)

    return send_with_more


def _encode(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
