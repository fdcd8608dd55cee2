"""Requests in work are limited in number and time."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spacenet.serve.limits import Limits, Workload
from spacenet.serve.messages import RequestError
from spacenet.serve.store import Served
from tests.serve.support import service

BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8]}}


async def _status(workload: Workload, pool: ThreadPoolExecutor, function: Any, *args: Any) -> Any:
    try:
        async with workload.admit():
            return await asyncio.get_running_loop().run_in_executor(pool, function, *args)
    except RequestError as error:
        return error.status


def test_more_than_may_be_in_work_is_refused_at_once() -> None:
    async def play(pool: ThreadPoolExecutor) -> list[Any]:
        workload, gate = Workload(Limits(max_requests=2)), threading.Event()
        running = [asyncio.create_task(_status(workload, pool, gate.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await _status(workload, pool, gate.wait)
        gate.set()
        return [refused, *await asyncio.gather(*running), await _status(workload, pool, int, 7), workload.in_work]

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(play(pool)) == [503, True, True, 7, 0]


def test_work_that_takes_too_long_goes_on_without_its_client() -> None:
    done: list[str] = []

    async def play(pool: ThreadPoolExecutor) -> None:
        workload, gate = Workload(Limits(timeout=0.05)), threading.Event()

        def wait_and_note() -> None:
            gate.wait(10)
            done.append("begun")

        assert await _status(workload, pool, wait_and_note) == 504
        assert await _status(workload, pool, done.append, "never begun") == 504
        gate.set()
        assert await _status(workload, pool, int, 7) == 7
        assert workload.in_work == 0

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(play(pool))
    assert done == ["begun"]


@pytest.mark.parametrize("error", [RequestError("no", 418), TimeoutError("of the work's own")])
def test_errors_of_work_stay_what_they_are(error: Exception) -> None:
    async def play() -> None:
        workload = Workload(Limits())
        try:
            async with workload.admit():
                raise error
        finally:
            assert workload.in_work == 0

    with pytest.raises(type(error), match=str(error)):
        asyncio.run(play())


def test_a_client_is_not_left_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.store.QUICK_SECONDS", 0.0)  # in threads
    gate, predict = threading.Event(), Served.measure
    monkeypatch.setattr(Served, "measure", lambda *args, **rest: (gate.wait(10), predict(*args, **rest))[1])
    with service(tmp_path, limits=Limits(timeout=0.1)) as it:
        began = time.monotonic()
        late = it.post("/predict", **BODY)
        assert (late.status_code, "took longer than 0.1 s" in late.json()["error"]) == (504, True)
        assert time.monotonic() - began < 5
        gate.set()
    with service(tmp_path, limits=Limits(max_requests=0)) as it:
        busy = it.post("/predict", **BODY)
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
