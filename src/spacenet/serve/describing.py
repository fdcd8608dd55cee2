"""The endpoints that say what the service is and holds: /health, /models, /model, /watch and the page /docs."""

from typing import Any

from fastapi import FastAPI, Request, Response

from spacenet import __version__
from spacenet.serve import messages
from spacenet.serve.messages import RequestError
from spacenet.serve.pages import POLICY, render_page
from spacenet.serve.routes import Context, add_model_route, add_route, respond


class Describing:
    """Describes the models and the service."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def health(self, request: Request) -> Response:
        hosted = self.context.hosted(request)
        model, running = hosted.store.current.model, hosted.jobs.running if hosted.jobs else None
        facts: dict[str, Any] = {"version": __version__, "tasks": len(model.tasks), "classes": len(model.classes)}
        return respond(messages.Health(**facts, learning=running))

    async def model(self, request: Request) -> Response:
        return respond(self.context.hosted(request).store.current.description)

    async def watch(self, request: Request) -> Response:
        hosted = self.context.hosted(request)
        if hosted.watcher is None:
            raise RequestError("predictions are not watched; the service can be started with --unknown 0.05", 404)
        return respond(hosted.watcher.summary().to_plain())

    async def models(self, request: Request) -> Response:
        found = []
        for each in self.context.models:
            model = each.store.current.model
            facts: dict[str, Any] = {"name": each.name, "tasks": len(model.tasks), "classes": len(model.classes)}
            found.append(messages.ModelSummary(**facts, learns=each.jobs is not None))
        return respond(messages.ModelList(models=found))


def add_describing_routes(app: FastAPI, context: Context) -> None:
    """Add GET /health, /models, /model, /watch and /docs."""
    describing = Describing(context)
    add_model_route(app, "GET /health", describing.health, messages.Health, "Health")
    add_route(app, "GET /models", describing.models, messages.ModelList, "List the models")
    add_model_route(app, "GET /model", describing.model, messages.Description, "Describe the model")
    add_model_route(app, "GET /watch", describing.watch, messages.WatchCounts, "What was counted of predictions")
    app.add_route("/docs", _show)


async def _show(request: Request) -> Response:
    page = render_page(request.app.openapi())
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})
