"""The page of the studio and its endpoints, beside those of the service: rename, forget, undo and cancel are theirs."""

import base64
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import ValidationError

from spacenet.serve.messages import Job, RequestError
from spacenet.serve.reading import IMAGES
from spacenet.serve.routes import FILE, Context, add_route, content_of, respond
from spacenet.studio import messages
from spacenet.studio.session import RATE, Session

STATIC = Path(__file__).with_name("static")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
}
LABEL = {"name": "label", "in": "query", "required": True, "schema": {"type": "string"}}
RATE_PARAMETER = {"name": "rate", "in": "query", "schema": {"type": "number", "default": RATE}}
NUMBER = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}


class Studio:
    """Reads requests of the page and answers them."""

    def __init__(self, session: Session, context: Context) -> None:
        self.session, self.context = session, context

    async def state(self, request: Request) -> Response:
        return respond(await self._do(self.session.state))

    async def start(self, request: Request) -> Response:
        async with self.context.bodies.receive(request) as body:
            try:
                wanted = messages.StartRequest.model_validate_json(body)
            except ValidationError as error:
                raise RequestError('send {"start": "drawings"} or {"start": "photos"}') from error
        await self._do(self.session.start, wanted.start)
        return await self.state(request)

    async def open(self, request: Request) -> Response:
        async with self.context.bodies.receive(request) as body:
            await self._do(self.session.open, body)
        return await self.state(request)

    async def add(self, request: Request) -> Response:
        self._check_image(request)
        self.session.examples.check_room()  # before the body is received
        async with self.context.bodies.receive(request) as body:
            return respond(await self._do(self.session.add, request.query_params.get("label", ""), body), 201)

    async def example(self, request: Request) -> Response:
        found = self.session.examples[_number(request)]
        return Response(found.picture.thumbnail, media_type="image/png", headers=HEADERS)

    async def remove(self, request: Request) -> Response:
        self.session.examples.remove([_number(request)])
        return await self.state(request)

    async def remove_class(self, request: Request) -> Response:
        label = request.query_params.get("label", "")
        self.session.examples.remove([each.number for each in self.session.examples if each.label == label])
        return await self.state(request)

    async def learn(self, request: Request) -> Response:
        return respond(await self._do(self.session.learn), 202)

    async def answer(self, request: Request) -> Response:
        self._check_image(request)
        rate = _rate(request)
        async with self.context.bodies.receive(request) as body:
            picture, found = await self._do(self.session.answer, body, rate)
        return respond(messages.Answer(**found, seen=base64.b64encode(picture.thumbnail).decode()))

    async def model(self, request: Request) -> Response:
        return _download(await self._do(self.session.model_file_bytes), "model.safetensors")

    async def onnx(self, request: Request) -> Response:
        return _download(await self._do(self.session.onnx_bytes, _rate(request)), "model.onnx")

    async def _do(self, work: Callable[..., Any], *args: Any) -> Any:
        return await self.context.in_thread(work, *args)

    def _check_image(self, request: Request) -> None:
        if (kind := content_of(request).kind) not in IMAGES:
            raise RequestError(f"content type {kind or '(none)'}; send one of {', '.join(IMAGES)}", 415)


def add_studio_routes(app: FastAPI, session: Session, context: Context) -> None:
    """Add the page at / and its files, and its endpoints under /studio."""
    studio = Studio(session, context)
    for path in sorted(STATIC.iterdir()):
        app.add_route("/" if path.name == "index.html" else f"/static/{path.name}", _serve_file(path))
    state, example = messages.State, messages.Added
    start = _describe(["application/json"], messages.StartRequest.model_json_schema())
    file, picture = (_describe(kinds, FILE) for kinds in (["application/octet-stream"], IMAGES))
    label, rate, number = ({"parameters": [each]} for each in (LABEL, RATE_PARAMETER, NUMBER))
    add_route(app, "GET /studio", studio.state, state, "What the page of the studio shows")
    add_route(app, "POST /studio/start", studio.start, state, "Begin with a new model", start)
    add_route(app, "POST /studio/open", studio.open, state, "Go on with a copy of a model file", file)
    add_route(app, "POST /studio/examples 201", studio.add, example, "Add an example of a class", picture | label)
    add_route(app, "DELETE /studio/examples", studio.remove_class, state, "Remove the examples of a class", label)
    add_route(app, "GET /studio/examples/{number}", studio.example, example, "An example, as PNG", number)
    add_route(app, "DELETE /studio/examples/{number}", studio.remove, state, "Remove an example", number)
    add_route(app, "POST /studio/learn 202", studio.learn, Job, "Learn the examples, but for a fifth of them")
    answer = "What the model makes of a picture, and why"
    add_route(app, "POST /studio/answer", studio.answer, messages.Answer, answer, picture | rate)
    add_route(app, "GET /studio/model.safetensors", studio.model, state, "The model file")
    add_route(app, "GET /studio/model.onnx", studio.onnx, state, "The model as ONNX", rate)


def _describe(kinds: Iterable[str], schema: Any) -> dict[str, Any]:
    """A request's body for the description of the service."""
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def _serve_file(path: Path) -> Callable[[Request], Any]:
    kind = KINDS[path.suffix]

    async def serve(request: Request) -> Response:
        return Response(path.read_bytes(), media_type=kind, headers=HEADERS)

    return serve


def _download(content: bytes, name: str) -> Response:
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _number(request: Request) -> int:
    text = str(request.path_params["number"])
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _rate(request: Request) -> float:
    text = request.query_params.get("rate", str(RATE))
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1:
        raise RequestError(f"rate: {text[:20]!r} is not a fraction between 0 and 1")
    return rate
