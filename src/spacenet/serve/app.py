"""The service's endpoints: each reads a request, uses the store or the training job, and responds with JSON."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from spacenet import __version__
from spacenet.errors import DataError
from spacenet.serve import messages
from spacenet.serve.body import BodyReader
from spacenet.serve.errors import RequestError
from spacenet.serve.jobs import TrainingJob
from spacenet.serve.reading import JSON, NPY, NPZ, read_inputs, read_task
from spacenet.serve.store import Store

ABOUT = "A spacenet model: predict the class of inputs and, where that is allowed, learn new classes."
NO_LEARNING = "this service does not learn; it can be started with --allow-learn"
MAX_TOP = 10**6
Result = TypeVar("Result")


class Handlers:
    """What all endpoints share: the model, the training job if learning is allowed, and the threads for the work."""

    def __init__(self, store: Store, learning: TrainingJob | None, pool: Executor, max_bytes: int) -> None:
        self.store, self.learning, self.pool = store, learning, pool
        self.bodies = BodyReader(max_bytes)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Work that takes a while must not block other requests."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    async def predict(self, request: Request) -> Response:
        kind, top = _kind(request), _top(request)
        async with self.bodies.read(request) as body:
            return await self.in_thread(lambda: self._predict(body, kind, top))

    def _predict(self, body: bytes, kind: str, top: int) -> Response:
        served = self.store.current  # taken once: all of an answer comes from one model
        inputs, top = read_inputs(body, kind, top, served.input_shape)
        return _respond(served.predict(inputs, top))

    async def learn(self, request: Request) -> Response:
        learning, kind = self.learning, _kind(request)
        if learning is None:
            raise RequestError(403, NO_LEARNING)
        learning.check_free()  # before the body is received
        async with self.bodies.read(request) as body:
            return await self.in_thread(lambda: self._learn(learning, body, kind))

    def _learn(self, learning: TrainingJob, body: bytes, kind: str) -> Response:
        x, y = read_task(body, kind, self.store.current.input_shape, self.bodies.most)
        return _respond(learning.start(x, y), 202)

    async def job(self) -> Response:
        return _respond(self.learning.job if self.learning else messages.Job())

    async def health(self) -> Response:
        served, job = self.store.current, self.learning.job if self.learning else messages.Job()
        return _respond(
            messages.Health(
                version=__version__,
                tasks=served.tasks,
                classes=len(served.classes),
                learning=job if job.state == "running" else None,
            )
        )

    async def model(self) -> Response:
        return _respond(self.store.current.description)


def create_app(store: Store, learning: TrainingJob | None, pool: Executor, max_bytes: int) -> FastAPI:
    """The service as an ASGI application; without `learning` it only predicts."""
    handlers = Handlers(store, learning, pool, max_bytes)
    app = FastAPI(title="spacenet", version=__version__, description=ABOUT, redoc_url=None)
    _add(app, "GET", "/health", handlers.health, messages.Health, "Health")
    _add(app, "GET", "/model", handlers.model, messages.Description, "Describe the model")
    predict = {**_body(messages.PredictRequest, NPY, "One array of inputs, as numpy.save writes it."), **_TOP}
    _add(app, "POST", "/predict", handlers.predict, messages.Predictions, "Predict the class of inputs", predict)
    learn = _body(messages.LearnRequest, NPZ, "Arrays x and y, as numpy.savez writes them.")
    _add(app, "POST", "/learn", handlers.learn, messages.Job, "Learn a task", learn, 202)
    _add(app, "GET", "/learn", handlers.job, messages.Job, "The state of the last training job")
    app.add_exception_handler(RequestError, _handle_error)
    app.add_exception_handler(DataError, _handle_error)
    app.add_exception_handler(HTTPException, _handle_error)
    app.add_exception_handler(ClientDisconnect, _handle_error)
    app.add_exception_handler(Exception, _handle_fault)
    return app


def _add(
    app: FastAPI,
    verb: str,
    path: str,
    function: Callable[..., Any],
    form: type[BaseModel],
    summary: str,
    extra: dict[str, Any] | None = None,
    status: int = 200,
) -> None:
    responses: dict[int | str, dict[str, Any]] = {status: {"model": form, "description": "Done."}}
    if verb == "POST":
        responses["4XX"] = {"model": messages.Problem, "description": "The reason why the request was rejected."}
    app.add_api_route(
        path,
        function,
        methods=[verb],
        response_model=None,
        responses=responses,
        status_code=status,
        summary=summary,
        description=form.__doc__ or "",
        openapi_extra=extra,
    )


_TOP = {
    "parameters": [
        {"name": "top", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1}},
    ]
}


def _body(form: type[BaseModel], binary: tuple[str, ...], words: str) -> dict[str, Any]:
    """A request's body for the service's description."""
    content: dict[str, Any] = {kind: {"schema": form.model_json_schema()} for kind in JSON}
    content |= {kind: {"schema": {"type": "string", "format": "binary", "description": words}} for kind in binary}
    return {"requestBody": {"required": True, "content": content}}


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def _top(request: Request) -> int:
    text = request.query_params.get("top", "1")
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MAX_TOP):
        raise RequestError(422, f"top: {text[:20]!r} is not a number of classes (need 1 or more)")
    return int(text)


def _respond(content: Any, status: int = 200) -> Response:
    """JSON in plain ASCII: labels may hold what is not text to UTF-8."""
    plain = content.model_dump() if isinstance(content, BaseModel) else content
    return Response(json.dumps(plain, separators=(",", ":")), status, media_type="application/json")


async def _handle_error(request: Request, error: Exception) -> Response:
    match error:
        case RequestError():
            return _respond({"error": error.reason}, error.status)
        case HTTPException():
            there = "choose from GET /health, /model, /learn, POST /predict, /learn, and a description at /docs"
            return _respond(
                {"error": f"{error.detail}: {request.method} {request.url.path}; {there}"}, error.status_code
            )
        case ClientDisconnect():
            return _respond({"error": "the client disconnected"}, 400)
        case _:
            return _respond({"error": str(error)}, 422)


async def _handle_fault(request: Request, error: Exception) -> Response:
    """A bug: the server writes it to its log."""
    return _respond({"error": "the request failed; the log of the service says why"}, 500)
