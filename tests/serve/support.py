"""A service on a tiny model, spoken to without a network."""

import asyncio
import io
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from spacenet.model.file import save_model
from spacenet.serve.app import create_app
from spacenet.serve.jobs import Jobs, Process
from spacenet.serve.models import Models, open_models
from spacenet.serve.queued import QueuedJob
from tests.model.support import model, new_model

HOST = "localhost:8000"
NPY = {"content-type": "application/x-npy"}
NPZ = {"content-type": "application/x-npz"}


class Service:
    """A service and a way to ask it."""

    def __init__(self, app: FastAPI, models: Models) -> None:
        self.app, self.models = app, models
        self.store, self.learning = models.default.store, models.default.jobs

    def ask(self, verb: str, path: str, **request: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(verb, path, **request)

        return asyncio.run(asked())

    def post(self, path: str, **request: Any) -> httpx.Response:
        return self.ask("POST", path, **request)

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()


@contextmanager
def service(
    folder: Path,
    *,
    learns: bool = False,
    max_bytes: int = 2**16,
    knows: tuple[np.ndarray, np.ndarray] | None = None,
    **rest: Any,
) -> Iterator[Service]:
    """Serves the model in model.safetensors of a folder; makes one of what it shall know, or 0, 1 | 2, 3.

    `rest` are further arguments of `create_app`.
    """
    path = folder / "model.safetensors"
    if knows:
        learned = new_model(knows[0].shape[1:])
        learned.learn(*knows)
        save_model(path, learned)
    elif not path.exists():
        save_model(path, model())
    with services({"model": path}, learns=learns, max_bytes=max_bytes, **rest) as it:
        yield it


@contextmanager
def services(
    files: Mapping[str, Path],
    *,
    learns: bool = False,
    max_bytes: int = 2**16,
    unknown: float | None = None,
    **rest: Any,
) -> Iterator[Service]:
    """Serves several models, each with a name."""
    with ThreadPoolExecutor(2) as pool, open_models(files, learns=learns, unknown=unknown) as models:
        yield Service(create_app(models, pool, max_bytes, {HOST}, **rest), models)


def npy(array: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def pretend(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let workers only do what a line of Python says, which knows the `folder` of the job."""

    def start(jobs: Jobs, current: QueuedJob) -> Process:
        command = [sys.executable, "-S", "-c", f"import sys; folder = sys.argv[1]; {script}", str(current.folder.path)]
        return Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(Jobs, "start_process", start)


def ended(it: Service, number: int | None = None) -> dict[str, Any]:
    """A job when it is over; by default the last that learns."""
    for _ in range(3000):
        job: dict[str, Any] = it.get("/learn" if number is None else f"/jobs/{number}")
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.02)
    raise AssertionError("it goes on for ever")
