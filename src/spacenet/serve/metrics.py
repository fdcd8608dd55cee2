"""Figures of the service for Prometheus, at /metrics."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spacenet.model.labels import Label
from spacenet.model.predictions import Measured
from spacenet.model.watching import WatchSummary
from spacenet.serve.access import endpoint_path, find_rule
from spacenet.serve.connections import Guard
from spacenet.serve.models import Hosted, Models
from spacenet.serve.request_log import method_name

MAX_LABELS = 1000
"""Classes of a model that are counted each; further ones are counted together."""
OTHER = "other"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SAMPLES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
JOB_STATES = ("queued", "running", "done", "failed", "canceled", "lost")
ReadNumber = Callable[[], float]


class Metrics:
    """Counts requests and predictions, in a registry of its own."""

    def __init__(self, models: Models) -> None:
        self.registry = own = CollectorRegistry()
        route, of = ("method", "endpoint"), ("model",)
        self.requests = Counter("spacenet_requests", "Requests that were answered.", (*route, "status"), registry=own)
        self.seconds = Histogram("spacenet_request_seconds", "Time to answer.", route, buckets=SECONDS, registry=own)
        self.running = Gauge("spacenet_requests_in_progress", "Requests that are being answered.", registry=own)
        self.samples = Histogram(
            "spacenet_request_samples", "Samples of a request to predict.", of, buckets=SAMPLES, registry=own
        )
        about = "Samples by the class that they are of, unknown ones left out."
        self.predictions = Counter("spacenet_predictions", about, (*of, "label"), registry=own)
        about = "Samples that are like no class, where unknown ones are looked for."
        self.unknown = Counter("spacenet_unknown_predictions", about, of, registry=own)
        self.models = models
        self._labels: dict[str, dict[str, Any]] = {each.name: {} for each in models}
        """For each model the labels that are counted."""
        self._of_endpoint = cache(self.seconds.labels)  # finding one among all takes as long as counting
        self._of_status = cache(self.requests.labels)
        own.register(_State(models))

    def note_request(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        self._of_status(method, endpoint, str(status)).inc()
        self._of_endpoint(method, endpoint).observe(seconds)

    def note_predictions(self, model: str, classes: Sequence[Label], found: Measured, rate: float | None) -> None:
        unknown = found.is_unknown(rate)
        counts = np.bincount(found.probabilities.argmax(1)[~unknown], minlength=len(classes))
        for number in np.flatnonzero(counts).tolist():
            self._counter(model, str(classes[number])).inc(int(counts[number]))
        if rate is not None:
            self.unknown.labels(model).inc(int(unknown.sum()))

    def _counter(self, model: str, label: str) -> Any:
        known = self._labels[model]
        if (counter := known.get(label)) is None:
            if len(known) >= MAX_LABELS:
                return self.predictions.labels(model, OTHER)
            counter = known[label] = self.predictions.labels(model, label)
        return counter

    def drop_removed(self) -> None:
        """Show no figures of classes that a model does not know any more."""
        for each in self.models:
            known, now = self._labels[each.name], {str(label) for label in each.store.current.classes}
            for label in [label for label in known if label not in now]:
                del known[label]
                self.predictions.remove(each.name, label)

    def read(self, name: str, about: str, function: ReadNumber) -> None:
        """Show a number that is read whenever the figures are asked for."""
        Gauge(name, about, registry=self.registry).set_function(function)


class _State(Collector):
    """What the models are now."""

    def __init__(self, models: Models) -> None:
        self.models = models

    def collect(self) -> Iterator[Metric]:
        facts: dict[str, tuple[str, Callable[[Hosted], float | None]]] = {
            "spacenet_tasks": ("Tasks that the model has learned.", lambda each: len(each.store.current.model.tasks)),
            "spacenet_classes": ("Classes that the model knows.", lambda each: len(each.store.current.classes)),
            "spacenet_space_left": (
                "More tasks like the last one that fit (100: at least that many).",
                lambda each: each.store.current.description["space_left"],
            ),
        }
        for name, (about, read) in facts.items():
            family = GaugeMetricFamily(name, about, labels=("model",))
            for each in self.models:
                if (value := read(each)) is not None:  # methods without space have none left
                    family.add_metric((each.name,), value)
            yield family
        yield self._jobs()
        yield from self._watched()

    def _jobs(self) -> Metric:
        family = GaugeMetricFamily("spacenet_jobs", "Jobs that change a model.", labels=("model", "state"))
        for each in self.models:
            for state, count in _job_states(each).items():
                family.add_metric((each.name, state), count)
        return family

    def _watched(self) -> Iterator[Metric]:
        summaries = {each.name: each.watcher.summary() for each in self.models if each.watcher is not None}
        about = "Samples of the last ones of each class that are like no class, as a fraction."
        rates = GaugeMetricFamily("spacenet_unknown_ratio", about, labels=("model",))
        about = "Mean typicality of the last samples of a class; 0.5 is usual."
        typicality = GaugeMetricFamily("spacenet_class_typicality", about, labels=("model", "label"))
        about = "1 if clearly more samples of a class than usual are little typical."
        drifted = GaugeMetricFamily("spacenet_class_drifted", about, labels=("model", "label"))
        for name, summary in summaries.items():
            if summary.recent_unknown_rate is not None:
                rates.add_metric((name,), summary.recent_unknown_rate / 100)
            _add_classes(name, summary, typicality, drifted)
        yield from (rates, typicality, drifted)


def _add_classes(name: str, summary: WatchSummary, typicality: GaugeMetricFamily, drifted: GaugeMetricFamily) -> None:
    for each in summary.classes[:MAX_LABELS]:
        if each.typicality is not None:
            typicality.add_metric((name, each.label), each.typicality)
            drifted.add_metric((name, each.label), float(each.drifted))


def _job_states(hosted: Hosted) -> dict[str, int]:
    """How many jobs of a model are in each state."""
    found = dict.fromkeys(JOB_STATES, 0)
    for job in hosted.jobs.list() if hosted.jobs is not None else ():
        found[job.state] += 1
    return found


class MeasureRequests:
    """Counts requests and their time, whatever answers them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.running.inc()
        try:
            await self.app(scope, receive, note_status)
        finally:
            self.metrics.running.dec()
            path = find_rule(scope["method"], endpoint_path(scope)).path
            self.metrics.note_request(method_name(scope), path, status, time.perf_counter() - began)


def add_metrics_route(app: FastAPI, metrics: Metrics) -> None:
    """Add GET /metrics."""

    async def show(request: Request) -> Response:
        metrics.drop_removed()
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), headers={"content-type": kind})

    about = "Figures of the service as Prometheus reads them."
    app.add_api_route("/metrics", show, response_class=PlainTextResponse, summary="Metrics", description=about)


def show_connections(app: FastAPI, guard: Guard) -> None:
    """Show the connections of the server that runs an application, too."""
    app.state.context.metrics.read("spacenet_open_connections", "Open connections.", lambda: len(guard.open))
