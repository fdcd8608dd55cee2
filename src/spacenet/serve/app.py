"""The service as one application: its endpoints, and how errors are answered."""

from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from spacenet import __version__
from spacenet.errors import DataError
from spacenet.serve.describing import add_describing_routes
from spacenet.serve.gate import Access, Gate
from spacenet.serve.limits import Limits
from spacenet.serve.messages import RequestError
from spacenet.serve.metrics import add_metrics_route
from spacenet.serve.models import Models
from spacenet.serve.predicting import add_predicting_routes
from spacenet.serve.routes import Context, respond
from spacenet.serve.teaching import add_teaching_routes
from spacenet.serve.v2 import add_v2_routes

ABOUT = "Models of spacenet: predict the class of inputs and, where that is allowed, learn new classes."


def create_app(
    models: Models,
    pool: Executor,
    max_bytes: int,
    hosts: Iterable[str],
    access: Access | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """The service as an ASGI application. `pool` are the threads that predict, `hosts` is what it is called."""
    context = Context(models, pool, max_bytes, limits)
    pages: dict[str, Any] = {"redoc_url": None, "docs_url": None, "redirect_slashes": False}
    app = FastAPI(title="spacenet", version=__version__, description=ABOUT, **pages)
    app.add_middleware(Gate, hosts=frozenset(hosts), access=access or Access(), metrics=context.metrics)
    app.state.context = context
    add_predicting_routes(app, context)  # first: routes are tried in turn
    add_describing_routes(app, context)
    add_teaching_routes(app, context)
    add_v2_routes(app, context)
    add_metrics_route(app, context.metrics)
    for kind in (RequestError, DataError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _handle_error)
    return app


async def _handle_error(request: Request, error: Exception) -> Response:
    match error:
        case RequestError() | DataError():
            retry = getattr(error, "retry_after", None)
            headers = {"retry-after": str(retry)} if retry is not None else None
            return respond({"error": str(error)}, getattr(error, "status", 422), headers)
        case HTTPException():
            reason = f"{error.detail}: {request.method} {request.url.path}; GET /docs describes what there is"
            return respond({"error": reason}, error.status_code)
        case ClientDisconnect():
            return respond({"error": "the client disconnected"}, 400)
        case _:  # a bug: the server writes it to its log
            return respond({"error": "the request failed; the log of the service says why"}, 500)
