"""The endpoint that predicts: /predict."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response

from spacenet.data.arrays import MAX_SAMPLES
from spacenet.data.preprocessing import Array
from spacenet.model.predictions import Measured
from spacenet.serve import messages
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Hosted
from spacenet.serve.options import PARAMETERS, RESIZE, AnswerOptions
from spacenet.serve.reading import FORM, IMAGES, NPY, Content, read_inputs, read_small_inputs
from spacenet.serve.request_log import note
from spacenet.serve.routes import Context, add_model_route, content_of, describe_body, query_of, respond
from spacenet.serve.store import NOTHING_LEARNED, Served

OF_IMAGES = " For models with an encoder also images as bytes, (n, h, w), (n, 3, h, w) or (n, h, w, 3)."
MAX_PREDICTIONS = 100_000  # classes with their probabilities in one response
MAX_SMALL = 256  # the same of a request that is computed together with others
Question = tuple[Served, Array, AnswerOptions]


class Predicting:
    """Reads inputs, predicts with the model that is served now, and responds."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def predict(self, request: Request) -> Response:
        hosted, content = self.context.hosted(request), content_of(request)
        options = AnswerOptions.of_query(query_of(request))
        async with self.context.bodies.receive(request) as body:
            question = self._read_small(hosted, body, content, options)
            if question is None:
                return await self.context.in_thread(self._predict, hosted, body, content, options)
            served, x, options = question
            found = await measure_together(self.context, hosted, served, x, options)
            return _respond(hosted, served, [found], options)

    def _predict(self, hosted: Hosted, body: bytes, content: Content, options: AnswerOptions) -> Response:
        served = hosted.store.current  # taken once: all of an answer comes from one model
        x, options = read_inputs(body, content, options, served)
        options = complete_options(hosted, served, options)
        _check_size(served, x, options)
        return _respond(hosted, served, measure_all(self.context, hosted, served, x, options), options)

    def _read_small(self, hosted: Hosted, body: bytes, content: Content, options: AnswerOptions) -> Question | None:
        """A few samples for a model that has classes; None if reading or answering them may take a while."""
        served = hosted.store.current
        if not served.classes or (found := read_small_inputs(body, content, options, served)) is None:
            return None
        x, options = found
        if _check_size(served, x, options) > MAX_SMALL or served.needs_encoder(x):
            return None
        return served, x, complete_options(hosted, served, options)


def _check_size(served: Served, x: Array, options: AnswerOptions) -> int:
    """How many classes with their probabilities an answer has. Raises `RequestError` if these are too many."""
    named = min(options.top, len(served.classes))
    if len(x) * named > MAX_PREDICTIONS:
        reason = f"{len(x)} × {named} predictions are more than {MAX_PREDICTIONS:,}; send fewer at a time"
        raise RequestError(reason, 413)
    return len(x) * named


def _respond(hosted: Hosted, served: Served, parts: Iterable[Measured], options: AnswerOptions) -> Response:
    rows = [each for found in parts for each in _answers(found, served, options)]
    return respond({"model": hosted.name, "tasks": len(served.model.tasks), "predictions": rows})


def complete_options(hosted: Hosted, served: Served, options: AnswerOptions) -> AnswerOptions:
    """The same with the rate of the service where none is asked for, if the model can tell unknown inputs. Raises
    `RequestError` if it cannot answer this."""
    if not served.classes:
        raise RequestError(NOTHING_LEARNED, 409)
    asked = options.unknown is not None or options.coverage is not None
    if asked and not served.tells_unknown:
        reason = f"the model {hosted.name} ({served.model.config.method}) cannot tell unknown inputs"
        raise RequestError(f"{reason}; leave out unknown and coverage, or serve a model of spacenet-density")
    if hosted.rate is None or options.unknown is not None or not served.tells_unknown:
        return options
    return replace(options, unknown=hosted.rate)


def measure_all(
    context: Context, hosted: Hosted, served: Served, x: Array, options: AnswerOptions
) -> Iterator[Measured]:
    """What the model says of samples, in parts."""
    _note_samples(context, hosted, x)
    x = served.encode(x)
    for first in range(0, len(x), MAX_SAMPLES):
        yield _measure(context, hosted, served, options, x[first : first + MAX_SAMPLES])


async def measure_together(
    context: Context, hosted: Hosted, served: Served, x: Array, options: AnswerOptions
) -> Measured:
    """The same for few samples that need no encoder, computed with those of other requests."""
    asked = options.unknown, options.coverage
    measure = partial(_measure, context, hosted, served, options)
    _note_samples(context, hosted, x)
    quick = served.quick and asked == (None, None)
    return await context.batcher.compute((id(served), *asked), measure, x, quick=quick)


def _note_samples(context: Context, hosted: Hosted, x: Array) -> None:
    note(samples=len(x))
    context.metrics.samples.labels(hosted.name).observe(len(x))


def _measure(context: Context, hosted: Hosted, served: Served, options: AnswerOptions, x: Array) -> Measured:
    """The one place where samples become predictions, and are counted."""
    found = served.measure(x, options.unknown is not None, options.coverage)
    context.metrics.note_predictions(hosted.name, served.classes, found, options.unknown)
    if hosted.watcher is not None:
        hosted.watcher.count(served.classes, found)
    return found


def _answers(found: Measured, served: Served, options: AnswerOptions) -> Iterator[dict[str, Any]]:
    """In the form of `messages.Prediction`."""
    nothing = [""] * len(found)
    for each in found.predictions(served.classes, nothing, range(len(found)), options.top, options.unknown):
        top = [{"label": label, "probability": share} for label, share in each.classes]
        first = top[0] if top else {"label": None, "probability": None}
        answer: dict[str, Any] = {**first, "top": top}
        if options.unknown is not None:
            answer |= {"unknown": not top, "typicality": each.typicality}
        if each.classes_of_set is not None:
            answer["set"] = each.classes_of_set
        yield answer


def add_predicting_routes(app: FastAPI, context: Context) -> None:
    """Add POST /predict."""
    files = dict.fromkeys(NPY, "One array of inputs, as numpy.save writes it." + OF_IMAGES)
    files |= dict.fromkeys(IMAGES, "One image file, for models of images and models with an encoder of images.")
    files |= dict.fromkeys(
        FORM, "Image files, in the order in which they are answered; their fields may have any name."
    )
    body = describe_body(messages.PredictRequest, files, [*PARAMETERS, RESIZE])
    predict = Predicting(context).predict
    add_model_route(app, "POST /predict", predict, messages.Predictions, "Predict the class of inputs", body)
