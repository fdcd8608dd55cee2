"""How well the studio learns from few examples: `python -m benchmarks.studio`, from the repository's root.

Photos go through `spacenet studio` itself, over HTTP: five classes of CIFAR-100 with 20 images each, then five more.
Drawings are digits of MNIST, 8 of each class: three classes, then two more, with and without variations of them.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from PIL import Image
from rich.console import Console

from benchmarks.command import load, measured, read_options
from spacenet.data.datasets import load_dataset
from spacenet.data.preprocessing import Array
from spacenet.errors import RunError
from spacenet.report.tables import Table
from spacenet.studio.drawings import vary_drawings
from spacenet.studio.session import RATE
from spacenet.studio.starting import blank_model

PNG = {"content-type": "image/png"}
TASKS = (range(5), range(5, 10))
DIGITS = ((0, 1, 2), (3, 4))


@dataclass(frozen=True)
class Options:
    """What is learned."""

    photos: int = 20
    """Images of each class to learn from, a fifth of which is set aside by the studio; 0: no photos."""
    test: int = 20
    """Test images of each class that are tried before and after."""
    drawings: int = 8
    """Digits of each class; 0: no drawings."""
    seeds: int = 5
    """Choices of the digits."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Learn, try, print and return the figures."""
    figures: dict[str, Any] = {"cores": os.cpu_count(), "load_at_start": load()}
    if options.drawings:
        figures["drawings"] = _drawings(options)
        rows = [[name, *(f"{100 * value:.1f} %" for value in row)] for name, row in figures["drawings"].items()]
        heads = ["learned from", "accuracy", "known called unknown", "unknown found"]
        console.print(Table("Digits 0 to 4; unknown are 5 to 9", heads, rows))
    if options.photos:
        figures["photos"] = _photos(options)
        rows = [[name, str(value)] for name, value in figures["photos"].items()]
        console.print(Table("Photos", ["figure", "value"], rows))
    return figures


# Drawings


def _drawings(options: Options) -> dict[str, list[float]]:
    """For each way to learn the accuracy, how much that is known is called unknown, and how much of the rest is."""
    torch.set_num_threads(1)
    data = load_dataset("mnist")
    x, y, x_test, y_test = data.x_train, data.y_train, np.asarray(data.x_test[:3000]), np.asarray(data.y_test[:3000])
    ways = {f"{options.drawings} digits of each": False, "and variations of them": True}
    return {
        name: np.mean([_few_digits(x, y, x_test, y_test, options.drawings, varied, s) for s in range(options.seeds)], 0)
        .round(4)
        .tolist()
        for name, varied in ways.items()
    }


def _few_digits(
    x: Array, y: Array, x_test: Array, y_test: Array, count: int, varied: bool, seed: int
) -> tuple[float, float, float]:
    rng, model = np.random.default_rng(seed), blank_model("drawings").new_model()
    for digits in DIGITS:
        rows = np.concatenate([rng.choice(np.flatnonzero(y == digit), count, replace=False) for digit in digits])
        task, labels = np.asarray(x[np.sort(rows)]).reshape(-1, 1, 28, 28), np.asarray(y[np.sort(rows)])
        model.learn(*(vary_drawings(task, labels, seed) if varied else (task, labels)))
    known, shown = np.isin(y_test, np.concatenate(DIGITS)), x_test.reshape(-1, 1, 28, 28)
    right = np.array(model.predict(shown[known])) == y_test[known]
    unknown = model.typicality(shown) < RATE
    return float(right.mean()), float(unknown[known].mean()), float(unknown[~known].mean())


# Photos


def _photos(options: Options) -> dict[str, Any]:
    data = load_dataset("cifar-100")
    train, test = (
        [_png_files(x, y, label, count) for label in range(10)]
        for x, y, count in (
            (data.x_train, data.y_train, options.photos),
            (data.x_test, data.y_test, options.test),
        )
    )
    figures: dict[str, Any] = {}
    with running_studio() as address, httpx.Client(base_url=address, timeout=120) as client:
        _checked(client.post("/studio/start", json={"start": "photos"}))
        for number, labels in enumerate(TASKS, 1):
            began = time.monotonic()
            for label in labels:
                for content in train[label]:
                    _checked(client.post("/studio/examples", params={"label": label}, content=content, headers=PNG))
            figures[f"task {number}: s per added photo"] = _seconds(began, len(labels) * options.photos)
            began = time.monotonic()
            state = _learn(client)
            _answer(client, test[labels[0]][0])
            figures[f"task {number}: s from Learn to the first answer"] = _seconds(began)
            right = _try_all(client, test, TASKS[0])
            figures[f"task {number}: % of the first five right, of {len(right)}"] = round(100 * np.mean(right), 1)
            counts = [each["after"] for each in state["classes"] if int(each["label"]) in TASKS[0]]
            aside = [sum(each[name] for each in counts) for name in ("right", "of")]
            figures[f"task {number}: right, and all, of those set aside"] = aside
        right = _try_all(client, test, range(10))
        figures[f"% of all ten right, of {len(right)}"] = round(100 * np.mean(right), 1)
    return figures


def _png_files(x: Array, y: Array, label: int, count: int) -> list[bytes]:
    found = []
    for row in np.flatnonzero(np.asarray(y) == label)[:count]:
        stream = BytesIO()
        Image.fromarray(np.ascontiguousarray(np.asarray(x[row]).transpose(1, 2, 0))).save(stream, "PNG")
        found.append(stream.getvalue())
    return found


def _learn(client: httpx.Client) -> dict[str, Any]:
    job = _checked(client.post("/studio/learn"))
    while job["state"] in ("queued", "running"):
        time.sleep(0.05)
        job = _checked(client.get(f"/jobs/{job['number']}"))
    if job["state"] != "done":
        raise RunError(f"the task was not learned: {job['error']}")
    return _checked(client.get("/studio"))


def _try_all(client: httpx.Client, test: list[list[bytes]], labels: range) -> list[bool]:
    """Whether each test image of these classes is right."""
    return [_answer(client, content) == str(label) for label in labels for content in test[label]]


def _answer(client: httpx.Client, content: bytes) -> str:
    return str(_checked(client.post("/studio/answer", content=content, headers=PNG))["classes"][0]["label"])


def _checked(answer: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()
    if answer.is_error:
        raise RunError(str(found.get("error")))
    return found


def _seconds(began: float, count: int = 1) -> float:
    return round((time.monotonic() - began) / count, 3)


@contextmanager
def running_studio() -> Iterator[str]:
    """Yields the address of `spacenet studio`."""
    command = [sys.executable, "-m", "spacenet.cli.main", "studio", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\d.:]+", process.stdout.readline())
            if found is None:
                raise RunError("the studio did not start")
            yield found[0]
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        finally:
            process.kill()


def main(arguments: list[str] | None = None) -> int:
    return measured("studio", read_options(Options, "studio", arguments), measure)


if __name__ == "__main__":
    raise SystemExit(main())
