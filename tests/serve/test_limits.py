"""Work for requests is limited in number and time."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spacenet.serve.limits import Limits, Work
from spacenet.serve.messages import RequestError
from spacenet.serve.store import Served
from tests.serve.support import service

BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8]}}


async def _status(work: Work, function: Any, *args: Any) -> Any:
    try:
        return await work.run(function, *args)
    except RequestError as error:
        return error.status


def test_more_than_may_be_in_work_is_refused_at_once() -> None:
    async def play(pool: ThreadPoolExecutor) -> list[Any]:
        work, gate = Work(pool, Limits(max_requests=2)), threading.Event()
        running = [asyncio.create_task(_status(work, gate.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await _status(work, gate.wait)
        gate.set()
        return [refused, *await asyncio.gather(*running), await _status(work, int, 7), work.in_work]

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(play(pool)) == [503, True, True, 7, 0]


def test_work_that_takes_too_long_goes_on_without_its_client() -> None:
    done: list[str] = []

    async def play(pool: ThreadPoolExecutor) -> None:
        work, gate = Work(pool, Limits(timeout=0.05)), threading.Event()
        assert await _status(work, lambda: (gate.wait(10), done.append("begun"))) == 504
        assert await _status(work, done.append, "never begun") == 504
        await asyncio.sleep(0.01)
        assert work.in_work == 1  # the thread is still at it
        gate.set()
        while work.in_work:
            await asyncio.sleep(0.01)
        assert await _status(work, int, 7) == 7

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(play(pool))
    assert done == ["begun"]


def test_errors_of_work_are_those_of_the_request() -> None:
    def fail() -> None:
        raise RequestError("no", 418)

    async def play(pool: ThreadPoolExecutor) -> tuple[Any, int]:
        work = Work(pool, Limits())
        status = await _status(work, fail)
        await asyncio.sleep(0)
        return status, work.in_work

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(play(pool)) == (418, 0)


def test_a_client_is_not_left_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    with service(tmp_path, limits=Limits(timeout=0.1)) as it:
        predict = Served.predict
        monkeypatch.setattr(Served, "predict", lambda *args, **rest: (gate.wait(10), predict(*args, **rest))[1])
        late = it.post("/predict", **BODY)
        gate.set()
        assert (late.status_code, "took longer than 0.1 s" in late.json()["error"]) == (504, True)
    with service(tmp_path, limits=Limits(max_requests=0)) as it:
        busy = it.post("/predict", **BODY)
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
