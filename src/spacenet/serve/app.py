"""The service as one application: its endpoints, and how errors are answered."""

from collections.abc import Iterable
from concurrent.futures import Executor

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from spacenet import __version__
from spacenet.errors import DataError
from spacenet.serve.describing import add_describing_routes
from spacenet.serve.hosts import HostCheck
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Models
from spacenet.serve.predicting import add_predicting_routes
from spacenet.serve.routes import Context, respond
from spacenet.serve.teaching import add_teaching_routes

ABOUT = "Models of spacenet: predict the class of inputs and, where that is allowed, learn new classes."


def create_app(models: Models, pool: Executor, max_bytes: int, hosts: Iterable[str]) -> FastAPI:
    """The service as an ASGI application. `pool` are the threads that predict, `hosts` is what it is called."""
    context = Context(models, pool, max_bytes)
    app = FastAPI(title="spacenet", version=__version__, description=ABOUT, redoc_url=None, docs_url=None)
    app.add_middleware(HostCheck, hosts=frozenset(hosts))
    add_describing_routes(app, context)
    add_predicting_routes(app, context)
    add_teaching_routes(app, context)
    for kind in (RequestError, DataError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _handle_error)
    return app


async def _handle_error(request: Request, error: Exception) -> Response:
    match error:
        case RequestError() | DataError():
            return respond({"error": str(error)}, getattr(error, "status", 422))
        case HTTPException():
            reason = f"{error.detail}: {request.method} {request.url.path}; GET /docs describes what there is"
            return respond({"error": reason}, error.status_code)
        case ClientDisconnect():
            return respond({"error": "the client disconnected"}, 400)
        case _:  # a bug: the server writes it to its log
            return respond({"error": "the request failed; the log of the service says why"}, 500)
