"""What all endpoints share: the models, the limits of bodies, threads for the work, and how an endpoint is added."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import request_response

from spacenet.serve import messages
from spacenet.serve.batching import Batcher
from spacenet.serve.bodies import Bodies
from spacenet.serve.limits import Limits
from spacenet.serve.metrics import Metrics
from spacenet.serve.models import Hosted, Models
from spacenet.serve.multipart import read_boundary
from spacenet.serve.options import read_flag
from spacenet.serve.reading import FORM, JSON, Content
from spacenet.serve.request_log import note

MODEL_PATH = "/models/{name}"
NAME_PARAMETER = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
FILE = {"type": "string", "format": "binary"}
ENCODER = json.JSONEncoder(separators=(",", ":"))
Result = TypeVar("Result")


class Context:
    """The models, what limits bodies, the threads for the work, and what is counted."""

    def __init__(self, models: Models, pool: Executor, max_bytes: int, limits: Limits | None = None) -> None:
        self.models, self.pool, self.bodies = models, pool, Bodies(max_bytes, limits)
        self.batcher = Batcher(pool)
        self.metrics = Metrics(models)
        self.metrics.read("spacenet_body_bytes", "Bytes of large bodies in memory.", lambda: self.bodies.used)

    async def in_thread(self, work: Callable[..., Result], *args: Any) -> Result:
        """Work that takes a while must not block other requests."""
        in_context = copy_context().run  # of this request
        return await asyncio.get_running_loop().run_in_executor(self.pool, in_context, work, *args)

    def hosted(self, request: Request) -> Hosted:
        """The model that a request is about: the one in its path, else the first."""
        name = request.path_params.get("name")
        found = self.models.default if name is None else self.models[name]
        note(model=found.name)
        return found


class DirectRoute(APIRoute):
    """Gives its function the request and nothing else: FastAPI's dependencies take as long as a prediction."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.app = request_response(endpoint)


def add_route(
    app: FastAPI, route: str, function: Any, form: type[BaseModel], summary: str, extra: Mapping[str, Any] | None = None
) -> None:
    """Add an endpoint; `route` is its verb, path and, if that is not 200, status."""
    verb, path, *rest = route.split()
    status = int(rest[0]) if rest else 200
    responses: dict[int | str, dict[str, Any]] = {status: {"model": form, "description": "Done."}}
    if verb != "GET":
        responses["4XX"] = {"model": messages.Problem, "description": "The reason why the request was rejected."}
    about: dict[str, Any] = {"summary": summary, "description": form.__doc__ or "", "responses": responses}
    app.router.add_api_route(
        path,
        function,
        methods=[verb],
        response_model=None,
        status_code=status,
        openapi_extra=dict(extra or {}),
        route_class_override=DirectRoute,
        **about,
    )


def add_model_route(
    app: FastAPI, route: str, function: Any, form: type[BaseModel], summary: str, extra: Mapping[str, Any] | None = None
) -> None:
    """Add an endpoint twice: for the first model, and under /models/NAME for each."""
    verb, path, *rest = route.split()
    add_route(app, route, function, form, summary, extra)
    named = {**(extra or {}), "parameters": [NAME_PARAMETER, *(extra or {}).get("parameters", ())]}
    add_route(app, " ".join([verb, MODEL_PATH + path, *rest]), function, form, f"{summary}, of one model", named)


def describe_body(form: type[BaseModel], binary: Mapping[str, str], parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """A request's body and parameters for the service's description; `binary` has a text for each content type."""
    schema = form.model_json_schema()
    schema = _put_in_place(schema, schema.pop("$defs", {}))
    content: dict[str, Any] = {kind: {"schema": schema} for kind in JSON}
    for kind, words in binary.items():
        if kind in FORM:
            content[kind] = {"schema": {"type": "object", "additionalProperties": FILE, "description": words}}
        else:
            content[kind] = {"schema": {**FILE, "description": words}}
    return {"requestBody": {"required": True, "content": content}, "parameters": list(parameters)}


def _put_in_place(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema with each reference replaced by what it leads to, which is not in the service's description."""
    if isinstance(schema, list):
        return [_put_in_place(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _put_in_place(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _put_in_place(each, definitions) for name, each in schema.items()}


def query_of(request: Request) -> Mapping[str, str]:
    """The query of an address; most have none, and need not be searched for it."""
    return request.query_params if request.scope["query_string"] else {}


def content_of(request: Request) -> Content:
    """How a request's body is to be read."""
    kind, boundary = read_boundary(request.headers.get("content-type", ""))
    return Content(kind, boundary, read_flag(query_of(request), "resize"))


def respond(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in plain ASCII: labels may hold what is not text to UTF-8."""
    plain = content.model_dump() if isinstance(content, BaseModel) else content
    return Response(ENCODER.encode(plain), status, media_type="application/json", headers=headers)
