"""The endpoint that predicts: /predict."""

from fastapi import FastAPI, Request, Response

from spacenet.serve import messages
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Hosted
from spacenet.serve.reading import IMAGES, NPY, read_inputs
from spacenet.serve.routes import Context, add_model_route, content_type, describe_body, respond

TOP = {"name": "top", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1}}
OF_IMAGES = " For models with an encoder also images as bytes, (n, h, w), (n, 3, h, w) or (n, h, w, 3)."
MAX_TOP = 10**6


class Predicting:
    """Reads inputs, predicts with the model that is served now, and responds."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def predict(self, request: Request) -> Response:
        hosted, kind, top = self.context.hosted(request), content_type(request), _top(request)
        async with self.context.bodies.receive(request) as body:
            return await self.context.in_thread(self._predict, hosted, body, kind, top)

    def _predict(self, hosted: Hosted, body: bytes, kind: str, top: int) -> Response:
        served = hosted.store.current  # taken once: all of an answer comes from one model
        inputs, top = read_inputs(body, kind, top, served.target)
        return respond(served.predict(inputs, top))


def add_predicting_routes(app: FastAPI, context: Context) -> None:
    """Add POST /predict."""
    files = dict.fromkeys(NPY, "One array of inputs, as numpy.save writes it." + OF_IMAGES)
    files |= dict.fromkeys(IMAGES, "One image file of any size, for models with an encoder.")
    body = describe_body(messages.PredictRequest, files, [TOP])
    predict = Predicting(context).predict
    add_model_route(app, "POST /predict", predict, messages.Predictions, "Predict the class of inputs", body)


def _top(request: Request) -> int:
    text = request.query_params.get("top", "1")
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MAX_TOP):
        raise RequestError(f"top: {text[:20]!r} is not a number of classes (need 1 or more)")
    return int(text)
