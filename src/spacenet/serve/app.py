"""The service's endpoints: each reads a request, uses the store or the training job, and responds with JSON."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from spacenet import __version__
from spacenet.errors import DataError
from spacenet.serve import messages
from spacenet.serve.bodies import Bodies
from spacenet.serve.hosts import HostCheck
from spacenet.serve.jobs import TrainingJob
from spacenet.serve.messages import RequestError
from spacenet.serve.pages import POLICY, render_page
from spacenet.serve.reading import IMAGES, JSON, NPY, NPZ, read_inputs, read_task
from spacenet.serve.store import Store

ABOUT = "A spacenet model: predict the class of inputs and, where that is allowed, learn new classes."
TOP = {"name": "top", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1}}
OF_IMAGES = " For models with an encoder also images as bytes, (n, h, w), (n, 3, h, w) or (n, h, w, 3)."
NO_LEARNING = "this service does not learn; it can be started with --allow-learn"
MAX_TOP = 10**6
Result = TypeVar("Result")


class Handlers:
    """What all endpoints share: the model, the training job if learning is allowed, and the threads for the work."""

    def __init__(self, store: Store, learning: TrainingJob | None, pool: Executor, max_bytes: int) -> None:
        self.store, self.learning, self.pool, self.bodies = store, learning, pool, Bodies(max_bytes)

    async def in_thread(self, work: Callable[..., Result], *args: Any) -> Result:
        """Work that takes a while must not block other requests."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *args)

    async def predict(self, request: Request) -> Response:
        kind, top = _kind(request), _top(request)
        async with self.bodies.receive(request) as body:
            return await self.in_thread(self._predict, body, kind, top)

    def _predict(self, body: bytes, kind: str, top: int) -> Response:
        served = self.store.current  # taken once: all of an answer comes from one model
        inputs, top = read_inputs(body, kind, top, served.target)
        return _respond(served.predict(inputs, top))

    async def learn(self, request: Request) -> Response:
        learning, kind = self.learning, _kind(request)
        if learning is None:
            raise RequestError(NO_LEARNING, 403)
        learning.check_free()  # before the body is received
        async with self.bodies.receive(request) as body:
            return await self.in_thread(self._learn, learning, body, kind)

    def _learn(self, learning: TrainingJob, body: bytes, kind: str) -> Response:
        served = self.store.current
        x, y = served.check_task(*read_task(body, kind, served.target, self.bodies.max_bytes))
        return _respond(learning.start(x, y), 202)

    async def job(self) -> Response:
        return _respond(self._job())

    def _job(self) -> messages.Job:
        return self.learning.job if self.learning else messages.Job()

    async def health(self) -> Response:
        model, job = self.store.current.model, self._job()
        facts: dict[str, Any] = {"version": __version__, "tasks": len(model.tasks), "classes": len(model.classes)}
        return _respond(messages.Health(**facts, learning=job if job.state == "running" else None))

    async def model(self) -> Response:
        return _respond(self.store.current.description)


def create_app(
    store: Store, learning: TrainingJob | None, pool: Executor, max_bytes: int, hosts: Iterable[str]
) -> FastAPI:
    """The service as an ASGI application; without `learning` it only predicts. `hosts`: what it is called."""
    handlers = Handlers(store, learning, pool, max_bytes)
    app = FastAPI(title="spacenet", version=__version__, description=ABOUT, redoc_url=None, docs_url=None)
    app.add_middleware(HostCheck, hosts=frozenset(hosts))
    _add(app, "GET /health", handlers.health, messages.Health, "Health")
    _add(app, "GET /model", handlers.model, messages.Description, "Describe the model")
    files = dict.fromkeys(NPY, "One array of inputs, as numpy.save writes it." + OF_IMAGES)
    files |= dict.fromkeys(IMAGES, "One image file of any size, for models with an encoder.")
    predict = _body(messages.PredictRequest, files, [TOP])
    _add(app, "POST /predict", handlers.predict, messages.Predictions, "Predict the class of inputs", predict)
    task = dict.fromkeys(NPZ, "Arrays x and y, as numpy.savez writes them." + OF_IMAGES)
    learn = _body(messages.LearnRequest, task)
    _add(app, "POST /learn 202", handlers.learn, messages.Job, "Learn a task", learn)
    _add(app, "GET /learn", handlers.job, messages.Job, "The state of the last training job")
    app.add_route("/docs", _show)
    for kind in (RequestError, DataError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _handle_error)
    return app


def _add(app: FastAPI, route: str, function: Any, form: type[BaseModel], summary: str, extra: Any = None) -> None:
    """Add an endpoint; `route` is its verb, path and, if that is not 200, status."""
    verb, path, *rest = route.split()
    status = int(rest[0]) if rest else 200
    responses: dict[int | str, dict[str, Any]] = {status: {"model": form, "description": "Done."}}
    if verb == "POST":
        responses["4XX"] = {"model": messages.Problem, "description": "The reason why the request was rejected."}
    about = {"summary": summary, "description": form.__doc__ or "", "responses": responses, "openapi_extra": extra}
    app.add_api_route(path, function, methods=[verb], response_model=None, status_code=status, **about)


def _body(form: type[BaseModel], binary: Mapping[str, str], parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """A request's body and parameters for the service's description; `binary` has a text for each content type."""
    content: dict[str, Any] = {kind: {"schema": form.model_json_schema()} for kind in JSON}
    for kind, words in binary.items():
        content[kind] = {"schema": {"type": "string", "format": "binary", "description": words}}
    return {"requestBody": {"required": True, "content": content}, "parameters": list(parameters)}


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def _top(request: Request) -> int:
    text = request.query_params.get("top", "1")
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MAX_TOP):
        raise RequestError(f"top: {text[:20]!r} is not a number of classes (need 1 or more)")
    return int(text)


def _respond(content: Any, status: int = 200) -> Response:
    """JSON in plain ASCII: labels may hold what is not text to UTF-8."""
    plain = content.model_dump() if isinstance(content, BaseModel) else content
    return Response(json.dumps(plain, separators=(",", ":")), status, media_type="application/json")


async def _show(request: Request) -> Response:
    page = render_page(request.app.openapi())
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})


async def _handle_error(request: Request, error: Exception) -> Response:
    match error:
        case RequestError() | DataError():
            return _respond({"error": str(error)}, getattr(error, "status", 422))
        case HTTPException():
            there = "choose from GET /health, /model, /learn, POST /predict, /learn, and a description at /docs"
            reason = f"{error.detail}: {request.method} {request.url.path}; {there}"
            return _respond({"error": reason}, error.status_code)
        case ClientDisconnect():
            return _respond({"error": "the client disconnected"}, 400)
        case _:  # a bug: the server writes it to its log
            return _respond({"error": "the request failed; the log of the service says why"}, 500)
