"""Loads `spacenet serve`: `python -m benchmarks.service`, from the repository's root.

First beside a plain service of the same network, FastAPI and onnxruntime in a few lines (`plain_service.py`): the same
clients ask both in turns, and while one is asked the other is stopped. Then while a task is learned. Every answer is
compared with what the model must answer.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import httpx
import numpy as np
import torch
import tyro
from rich.console import Console

from benchmarks.clients import Asked, Clients, client_process
from benchmarks.command import load, measured, read_options
from benchmarks.service_figures import (
    Answer,
    Checker,
    Figures,
    add_counts,
    comparison_table,
    comparison_verdict,
    count_failures,
    describe_phases,
    describe_service,
    latencies,
    learning_verdict,
    phases_table,
    slowdown,
    split_phases,
    wall_seconds,
)
from benchmarks.services import Running, serve, serve_plain
from benchmarks.workload import STREAM, workload
from spacenet.config.model import PreprocessingConfig
from spacenet.config.presets import preset_config
from spacenet.data.datasets import MNIST
from spacenet.data.preprocessing import Array
from spacenet.errors import RunError
from spacenet.model.export import export_model
from spacenet.model.file import load_model, save_model
from spacenet.model.model import Model

BODIES = 64
"""Different requests that are asked in turn."""
LARGE, LARGE_BODIES = 64, 8
"""Samples of a large request, and how many of these there are."""
PHOTO = (3, 64, 64)
TOLERANCE, EXPORTED_TOLERANCE = 1e-5, 1e-4
"""How far a probability may be from the model's for one sample alone: of the service, because 32-bit scores are rounded
otherwise when several samples are computed together, and of the exported network."""
WARM_UP = 1.0
"""Seconds."""


@dataclass(frozen=True)
class Options:
    """Throughput beside a plain service, and latencies while a task is learned: are all answers right?"""

    model: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="MODEL")] = None
    """A model file, which is copied (default: one as for Split MNIST, that has learned five tasks of random images)."""
    rounds: int = 6
    """Rounds in which both services are asked in turn."""
    seconds: float = 3.0
    """Of each service in a round."""
    learn_rounds: int = 2
    """How often a task is learned, each time by a new service."""
    learn_seconds: float = 12.0
    """Before the task is learned, and half as long afterwards."""
    clients: int = 32
    """Clients that ask at the same time."""
    samples: int = 12_000
    """Samples of the task that is learned."""
    json: Path | None = None
    """Also write the figures to this file."""
    unbatched: bool = False
    """Only compare with the same service that computes each request alone, instead of with the plain one."""
    tiny: bool = False
    """Tiny sizes: shows whether the measuring works, nothing else."""


def measure(options: Options, console: Console) -> Figures:
    """Load the services, check every answer, print and return the figures."""
    torch.set_num_threads(1)
    figures: Figures = {"cores": os.cpu_count(), "torch": torch.__version__, "load_at_start": load()}
    with tempfile.TemporaryDirectory() as scratch, client_process() as clients:
        model, *others = _make_models(Path(scratch), options)
        asked = {model: (1, LARGE), **dict.fromkeys(others, (1,))}
        figures["comparisons"] = [
            each for file, sizes in asked.items() for each in _compare(file, sizes, clients, options, console)
        ]
        if options.learn_rounds and not options.unbatched:
            figures["learning"] = _learn(model, clients, options, console)
    figures["load_at_end"] = load()
    loads = f"load {figures['load_at_start']} at the start, {figures['load_at_end']} at the end"
    console.print(f"{figures['cores']} cores, torch {figures['torch']}, {loads}.", highlight=False)
    return figures


# The models and what they are asked


def _make_models(folder: Path, options: Options) -> list[Path]:
    """The files of a model as for Split MNIST and of one for photos, each with its ONNX file beside."""
    files = [folder / "model.safetensors"]
    if options.model is not None:
        shutil.copyfile(options.model, files[0])
    else:
        save_model(files[0], _new_model(MNIST.shape, 5, tiny=options.tiny))
    if not options.tiny:
        files.append(folder / "photos.safetensors")
        save_model(files[1], _new_model(PHOTO, 2, tiny=False))
    for file in files:
        export_model(load_model(file), file.with_suffix(".onnx"), "onnx")
    return files


def _new_model(shape: tuple[int, ...], tasks: int, *, tiny: bool) -> Model:
    """A model that has learned random images, which takes as much space as others."""
    if tiny:
        with workload(1, None, tiny=True) as work:
            config = work.config
    else:
        config = preset_config(STREAM, "spacenet")
    model = Model(replace(config.model, preprocessing=PreprocessingConfig()), shape)
    for task in range(tasks):
        model.learn(_random(200, model, seed=10 + task), np.arange(200) % 2 + 2 * task)
    return model


def _random(count: int, model: Model, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (count, *model.input_shape), dtype=np.uint8)


def _answers(model: Model, x: Array) -> list[Answer]:
    """What the model must answer; one sample at a time, however many are computed together."""
    each = (model.predict_proba(x[row : row + 1])[0] for row in range(len(x)))
    return [(model.classes[int(chances.argmax())], float(chances.max())) for chances in each]


def _bodies(x: Array, samples: int) -> list[bytes]:
    """Requests of so many samples each, every sample as one list."""
    flat = x.reshape(-1, samples, x[0].size)
    return [json.dumps({"inputs": each.tolist()}).encode() for each in flat]


def _grouped(answers: Sequence[Answer], samples: int) -> list[Sequence[Answer]]:
    return [answers[first : first + samples] for first in range(0, len(answers), samples)]


# Beside the plain service


def _compare(
    file: Path, sizes: Sequence[int], clients: Clients, options: Options, console: Console
) -> Iterator[Figures]:
    """Both services, with requests of so many samples each."""
    model = load_model(file)
    other = serve(file, alone=True) if options.unbatched else serve_plain(file.with_suffix(".onnx"))
    with serve(file) as own, other as beside:
        for service in (own, beside):
            service.process.suspend()
        for samples in sizes:
            figures = _compare_in_turns(model, samples, (own, beside), clients, options)
            console.print(comparison_table(figures), highlight=False)
            console.print(comparison_verdict(figures) + "\n", highlight=False)
            yield figures


def _compare_in_turns(
    model: Model, samples: int, services: tuple[Running, Running], clients: Clients, options: Options
) -> Figures:
    x = _random(BODIES if samples == 1 else LARGE_BODIES * samples, model, seed=1)
    bodies, expected = _bodies(x, samples), _grouped(_answers(model, x), samples)
    own = Checker({len(model.tasks): expected}, TOLERANCE)
    checkers = own, own if options.unbatched else Checker({None: expected}, EXPORTED_TOLERANCE)
    names = "spacenet serve", "the same, each request alone" if options.unbatched else "plain"
    rounds: tuple[list[Figures], list[Figures]] = ([], [])
    for number in range(-1, options.rounds):
        for which in (0, 1) if number % 2 else (1, 0):  # each is the first in every other round
            seconds = min(WARM_UP, options.seconds) if number < 0 else options.seconds
            found = _ask_for(services[which], bodies, seconds, clients, options.clients, checkers[which])
            if number >= 0:
                rounds[which].append(found)
    ratios = [mine["per_second"] / other["per_second"] for mine, other in zip(*rounds, strict=True)]
    return {
        "clients": options.clients,
        "samples": samples,
        "values": int(x[0].size),
        "services": dict(zip(names, map(describe_service, rounds), strict=True)),
        "ratios": ratios,
        "ratio": median(ratios),
    }


def _ask_for(
    service: Running, bodies: Sequence[bytes], seconds: float, clients: Clients, count: int, checker: Checker
) -> Figures:
    """Ask a service for some seconds."""
    with service.awake():
        before = service.cpu_seconds()
        clients.start(f"{service.address}/predict", bodies, count)
        time.sleep(seconds)
        asked = clients.stop()
        cpu = service.cpu_seconds() - before
    return {
        "counts": checker.count(asked),
        "per_second": len(asked) / wall_seconds(asked),
        "milliseconds": latencies(asked),
        "cpu_milliseconds": 1000 * cpu / len(asked),
    }


# While a task is learned


def _learn(file: Path, clients: Clients, options: Options, console: Console) -> Figures:
    """Answers of services that learn a task meanwhile."""
    before = load_model(file)
    x = _random(BODIES, before, seed=1)
    task, bodies, old = _task(before, options.samples), _bodies(x, 1), _answers(before, x)
    counts, rounds, seconds, distinguished = [], [], [], BODIES
    for number in range(options.learn_rounds):
        path = file.with_name(f"learns-{number}.safetensors")
        shutil.copyfile(file, path)
        with serve(path, "--allow-learn", "--max-request-mb", "1024") as service:
            asked, times = _ask_while_learning(service, bodies, task, clients, options)
        after = load_model(path)
        if len(after.tasks) == len(before.tasks):
            raise RunError("the service's file knows no more tasks than before")
        new = _answers(after, x)
        checker = Checker({len(m.tasks): _grouped(a, 1) for m, a in ((before, old), (after, new))}, TOLERANCE)
        distinguished = min(distinguished, sum(not checker.alike(*pair) for pair in zip(old, new, strict=True)))
        counts.append(checker.count(asked) | _count_models(asked, len(before.tasks)))
        rounds.append(split_phases(asked, times))
        seconds.append(times[1] - times[0])
    figures = {
        **add_counts(counts),
        "clients": options.clients,
        "inputs": BODIES,
        "inputs_distinguished": distinguished,
        "learning_seconds": seconds,
        "phases": describe_phases(rounds),
        "slowdown_of_rounds": [slowdown(describe_phases([each])) for each in rounds],
    }
    figures["slowdown"] = slowdown(figures["phases"])
    console.print(phases_table(figures), highlight=False)
    console.print(learning_verdict(figures), highlight=False)
    return figures


def _count_models(asked: Sequence[Asked], tasks: int) -> Figures:
    """Answers by the model with so many tasks, and by the one with one more."""
    found = [each.answer()["tasks"] for each in asked if each.status == 200]
    return {"by_old_model": found.count(tasks), "by_new_model": found.count(tasks + 1)}


def _task(model: Model, samples: int) -> bytes:
    """Two new classes, as /learn takes them."""
    stream = BytesIO()
    np.savez(stream, x=_random(samples, model, seed=2), y=np.array([10_001, 10_002])[np.arange(samples) % 2])
    return stream.getvalue()


def _ask_while_learning(
    service: Running, bodies: Sequence[bytes], task: bytes, clients: Clients, options: Options
) -> tuple[list[Asked], tuple[float, float]]:
    """What was answered, and when the task was learned."""
    address = f"{service.address}/predict"
    clients.start(address, bodies, options.clients)
    time.sleep(min(WARM_UP, options.learn_seconds))
    clients.stop()
    clients.start(address, bodies, options.clients)
    try:
        time.sleep(options.learn_seconds)
        times = _teach(service.address, task)
        time.sleep(options.learn_seconds / 2)
    finally:
        asked = clients.stop()
    return asked, times


def _teach(address: str, task: bytes) -> tuple[float, float]:
    began = time.time()
    with httpx.Client(base_url=address, timeout=60) as client:
        answer = client.post("/learn", content=task, headers={"content-type": "application/x-npz"})
        job = answer.json()
        while job.get("state") in ("queued", "running"):
            time.sleep(0.1)
            job = client.get("/learn").json()
    if job.get("state") != "done":
        raise RunError(f"the task was not learned: {job.get('error')}")
    return began, time.time()


def main(arguments: list[str] | None = None) -> int:
    return measured("service", read_options(Options, "service", arguments), measure, exit_code)


def exit_code(figures: Mapping[str, Any]) -> int:
    """Whether any answer was not as it should be; how fast they are is for the reader."""
    counts = [each for comparison in figures["comparisons"] for each in comparison["services"].values()]
    counts += [figures["learning"]] if "learning" in figures else []
    return int(any(map(count_failures, counts)))


if __name__ == "__main__":
    sys.exit(main())
