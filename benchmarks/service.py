"""Loads `spacenet serve` while it learns a task: `python -m benchmarks.service`, from the repository's root.

Every answer is compared with what the model before or after the task must answer.
"""

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import torch
import tyro
from rich.console import Console

from benchmarks.clients import Asked, ask_on
from benchmarks.command import load, measured, read_options
from benchmarks.workload import STREAM, workload
from spacenet.config.model import PreprocessingConfig
from spacenet.config.presets import preset_config
from spacenet.data.datasets import MNIST
from spacenet.data.preprocessing import Array
from spacenet.errors import RunError
from spacenet.model.file import load_model, save_model
from spacenet.model.model import Model
from spacenet.report.tables import Table

INPUTS = 64
"""Different inputs that are asked for, one at a time."""
TOLERANCE = 1e-6
PERCENTILES = (50, 90, 99, 100)
PHASES = ("before", "during", "after")
Expected = Mapping[int, Sequence[tuple[Any, float]]]


@dataclass(frozen=True)
class Options:
    """Predictions under load while a task is learned: are all right, and how long do they take?"""

    model: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="MODEL")] = None
    """A model file, which is copied (default: one as for Split MNIST, that has learned five tasks of random images)."""
    seconds: float = 60.0
    """How long to ask; a task is learned after the first third."""
    clients: int = 32
    """Clients that ask at the same time."""
    samples: int = 12_000
    """Samples of the task that is learned."""
    json: Path | None = None
    """Also write the figures to this file."""
    tiny: bool = False
    """Tiny sizes: shows whether the measuring works, nothing else."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Load a service, check every answer, print and return the figures."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.safetensors"
        if options.model is not None:
            shutil.copyfile(options.model, path)
        else:
            save_model(path, _new_model(tiny=options.tiny))
        before, load_at_start = load_model(path), load()
        inputs = _random(INPUTS, before, seed=1)
        with _server(path) as address:
            asked, times = _load(address, inputs, _task(before, options.samples), options)
        after = load_model(path)
    expected = {len(model.tasks): _answers(model, inputs) for model in (before, after)}
    if len(expected) < 2:
        raise RunError("the service's file knows no more tasks than before")
    figures = {"cores": os.cpu_count(), "load_at_start": load_at_start, "clients": options.clients}
    figures |= _figures(asked, times, expected)
    console.print(_phases_table(figures), highlight=False)
    console.print(_verdict(figures), highlight=False)
    return figures


# The model and what it is given


def _new_model(*, tiny: bool) -> Model:
    if tiny:
        with workload(1, None, tiny=True) as work:
            config = work.config
    else:
        config = preset_config(STREAM, "spacenet")
    model = Model(replace(config.model, preprocessing=PreprocessingConfig()), MNIST.shape)
    for task in range(5):
        model.learn(_random(200, model, seed=10 + task), np.arange(200) % 2 + 2 * task)
    return model


def _random(count: int, model: Model, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (count, *model.input_shape), dtype=np.uint8)


def _task(model: Model, samples: int) -> bytes:
    """Two new classes, as /learn takes them."""
    stream = BytesIO()
    np.savez(stream, x=_random(samples, model, seed=2), y=np.array(["new 1", "new 2"])[np.arange(samples) % 2])
    return stream.getvalue()


def _answers(model: Model, inputs: Array) -> list[tuple[Any, float]]:
    """What the model must answer; one input at a time, as it is asked."""
    each = (model.predict_proba(inputs[row : row + 1])[0] for row in range(len(inputs)))
    return [(model.classes[int(chances.argmax())], float(chances.max())) for chances in each]


# The service and its load


@contextmanager
def _server(path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "spacenet.cli.main", "serve", str(path), "--port", "0", "--allow-learn"]
    with subprocess.Popen([*command, "--max-request-mb", "1024"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise RunError("the service did not start")
            yield found[0]
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        finally:
            process.kill()


def _load(address: str, inputs: Array, task: bytes, options: Options) -> tuple[list[Asked], tuple[float, float]]:
    """Ask from a second process and let a task be learned meanwhile; what was answered, and when it was learned."""
    context = multiprocessing.get_context("spawn")
    over, out = context.Event(), context.Queue()
    clients = context.Process(target=ask_on, args=(address, inputs.tolist(), options.clients, over, out), daemon=True)
    clients.start()
    end = time.time() + options.seconds
    try:
        time.sleep(options.seconds / 3)
        times = _learned(address, task)
        time.sleep(max(end - time.time(), options.seconds / 6))
    finally:
        over.set()
        asked: list[Asked] = out.get(timeout=120)
        clients.join()
    return asked, times


def _learned(address: str, task: bytes) -> tuple[float, float]:
    began = time.time()
    with httpx.Client(base_url=address, timeout=60) as client:
        answer = client.post("/learn", content=task, headers={"content-type": "application/x-npz"})
        job = answer.json()
        while job.get("state") == "running":
            time.sleep(0.1)
            job = client.get("/learn").json()
    if job.get("state") != "done":
        raise RunError(f"the task was not learned: {job.get('error')}")
    return began, time.time()


# The figures


def _figures(asked: Sequence[Asked], times: tuple[float, float], expected: Expected) -> dict[str, Any]:
    answered = [each for each in asked if each.status == 200]
    first, last = min(expected), max(expected)
    distinguished = sum(not _alike(*pair) for pair in zip(expected[first], expected[last], strict=True))
    return {
        "requests": len(asked),
        "wrong": sum(not _right(each, expected) for each in answered),
        "by_old_model": sum(each.answer["tasks"] == first for each in answered),
        "by_new_model": sum(each.answer["tasks"] == last for each in answered),
        "inputs": INPUTS,
        "inputs_distinguished": distinguished,
        "status_4xx": sum(400 <= each.status < 500 for each in asked),
        "status_5xx": sum(each.status >= 500 for each in asked),
        "no_answer": sum(each.status == 0 for each in asked),
        "learning_seconds": times[1] - times[0],
        "phases": {name: _phase([e for e in asked if _phase_of(e, times) == name]) for name in PHASES},
    }


def _right(asked: Asked, expected: Expected) -> bool:
    tasks, (prediction,) = asked.answer["tasks"], asked.answer["predictions"]
    known = expected.get(tasks)
    return known is not None and _alike(known[asked.number], (prediction["label"], prediction["probability"]))


def _alike(one: tuple[Any, float], other: tuple[Any, float]) -> bool:
    return bool(one[0] == other[0]) and abs(one[1] - other[1]) <= TOLERANCE


def _phase_of(asked: Asked, times: tuple[float, float]) -> str:
    """A request belongs to the learning if it was on its way at any moment of it."""
    if asked.began + asked.seconds < times[0]:
        return "before"
    return "during" if asked.began <= times[1] else "after"


def _phase(asked: Sequence[Asked]) -> dict[str, Any]:
    if not asked:
        return {"requests": 0}
    wall = max(each.began + each.seconds for each in asked) - min(each.began for each in asked)
    latency = np.percentile([1000 * each.seconds for each in asked], PERCENTILES)
    names = (f"p{percentile}" if percentile < 100 else "max" for percentile in PERCENTILES)
    return {
        "requests": len(asked),
        "per_second": len(asked) / wall,
        "milliseconds": dict(zip(names, latency.tolist(), strict=True)),
    }


def _phases_table(figures: Mapping[str, Any]) -> Table:
    rows = []
    for name, phase in figures["phases"].items():
        if phase["requests"]:
            latency = [f"{value:.1f}" for value in phase["milliseconds"].values()]
            rows.append([name, f"{phase['requests']:,}", f"{phase['per_second']:.0f}", *latency])
    columns = ["the task is learned", "requests", "per second", "p50 ms", "p90 ms", "p99 ms", "max ms"]
    return Table(f"{figures['clients']} clients, one input per request", columns, rows)


def _verdict(figures: Mapping[str, Any]) -> str:
    return (
        f"{figures['requests']:,} requests: {figures['wrong']} wrong answers, {figures['status_4xx']} refused (4xx), "
        f"{figures['status_5xx']} failed (5xx), {figures['no_answer']} without answer.\n"
        f"{figures['by_old_model']:,} answers by the model before the task, {figures['by_new_model']:,} by the one "
        f"after; they answer {figures['inputs_distinguished']} of the {figures['inputs']} inputs differently.\n"
        f"Learning took {figures['learning_seconds']:.1f} s. {figures['cores']} cores, load at the start "
        f"{figures['load_at_start']}."
    )


def main(arguments: list[str] | None = None) -> int:
    return measured("service", read_options(Options, "service", arguments), measure, exit_code)


def exit_code(figures: Mapping[str, Any]) -> int:
    """Whether any answer was not as it should be."""
    return int(any(figures[name] for name in ("wrong", "status_4xx", "status_5xx", "no_answer")))


if __name__ == "__main__":
    sys.exit(main())
