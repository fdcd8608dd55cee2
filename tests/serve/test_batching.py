"""Requests that are computed together: fake work, in an order that the tests decide."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.serve import batching
from spacenet.serve.batching import Batcher
from spacenet.serve.store import Served
from tests.model.support import blobs
from tests.serve.support import HOST, service


class Double:
    """Doubles samples and notes how many came together; negative ones fail. `pause` keeps it in its thread."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        self.go_on.set()

    def __call__(self, x: Array) -> Array:
        self.sizes.append(len(x))
        self.begun.release()
        assert self.go_on.wait(20)
        if (x < 0).any():
            raise DataError(f"row {int((x < 0).any(1).argmax())} is negative")
        return 2 * x

    def pause(self) -> None:
        self.go_on.clear()


def rows(*values: float) -> Array:
    return np.array(values, np.float32)[:, None]


def play(act: Callable[[Batcher], Coroutine[Any, Any, None]]) -> None:
    """Let a test act on a batcher of one thread."""
    with ThreadPoolExecutor(1) as pool:
        asyncio.run(asyncio.wait_for(act(Batcher(pool)), 30))


async def begun(work: Double) -> None:
    """Wait until the work runs in its thread."""
    await asyncio.to_thread(work.begun.acquire)


def ask(it: Batcher, work: Double, several: Sequence[Array], quick: bool = False) -> list["asyncio.Task[Array]"]:
    return [asyncio.create_task(it.compute("key", work, x, quick=quick)) for x in several]


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "AT_ONCE", 1)


@pytest.mark.parametrize("quick", [False, True])
def test_requests_that_come_together_are_computed_together(quick: bool) -> None:
    async def act(it: Batcher) -> None:
        work = Double()
        found = await asyncio.gather(*ask(it, work, [rows(1), rows(2, 3), rows(4)], quick))
        assert [each[:, 0].tolist() for each in found] == [[2], [4, 6], [8]]
        assert work.sizes == [4]
        assert (await it.compute("key", work, rows(5), quick=quick)).tolist() == [[10]]
        assert work.sizes == [4, 1]

    play(act)


def test_what_comes_during_a_computation_is_the_next_batch() -> None:
    async def act(it: Batcher) -> None:
        work = Double()
        work.pause()
        first = ask(it, work, [rows(1)])
        await begun(work)
        later = ask(it, work, [rows(2), rows(3), rows(4)])
        await asyncio.sleep(0)
        assert work.sizes == [1]
        work.go_on.set()
        assert [each.tolist() for each in await asyncio.gather(*first, *later)] == [[[2]], [[4]], [[6]], [[8]]]
        assert work.sizes == [1, 3]

    play(act)


@pytest.mark.parametrize("quick", [False, True])
def test_only_the_request_that_has_to_fails(quick: bool) -> None:
    async def act(it: Batcher) -> None:
        work = Double()
        tasks = ask(it, work, [rows(1), rows(2, -3), rows(4)], quick)
        one, bad, other = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(one, np.ndarray)
        assert isinstance(other, np.ndarray)
        assert (one.tolist(), other.tolist()) == ([[2]], [[8]])
        assert isinstance(bad, DataError)
        assert str(bad) == "row 1 is negative", "the row is not that of its own request"
        assert work.sizes == [4, 1, 2, 1]

    play(act)


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(it: Batcher) -> None:
        work = Double()
        several = [rows(*range(size)) for size in (2, 2, 3, 1, 9)]
        found = await asyncio.gather(*ask(it, work, several, quick=True))
        assert [len(each) for each in found] == [2, 2, 3, 1, 9]
        assert work.sizes == [4, 4, 9], "a batch is too large, or a large request was not computed alone"
        monkeypatch.setattr(batching, "MAX_BYTES", 12)
        work.sizes.clear()
        await asyncio.gather(*ask(it, work, [rows(1, 2), rows(3), rows(4)], quick=True))
        assert work.sizes == [3, 1]

    monkeypatch.setattr(batching, "MAX_SAMPLES", 4)
    play(act)


def test_what_differs_is_not_mixed() -> None:
    async def act(it: Batcher) -> None:
        old, new = Double(), Double()
        wide, whole = np.ones((1, 2), np.float32), np.ones((1, 1), np.int64)
        found = await asyncio.gather(
            it.compute("old", old, rows(1), quick=True),
            it.compute("new", new, rows(2), quick=True),
            it.compute("old", old, rows(3), quick=True),
            it.compute("old", old, wide, quick=True),
            it.compute("old", old, whole, quick=True),
        )
        assert [each.shape for each in found] == [(1, 1), (1, 1), (1, 1), (1, 2), (1, 1)]
        assert found[-1].dtype == np.int64
        assert (old.sizes, new.sizes) == ([2, 1, 1], [1])

    play(act)


def test_quick_work_does_not_wait_for_threads() -> None:
    async def act(it: Batcher) -> None:
        slow, quick = Double(), Double()
        slow.pause()
        (waiting,) = ask(it, slow, [rows(1)])
        await begun(slow)
        assert (await it.compute("other", quick, rows(2), quick=True)).tolist() == [[4]]
        assert not waiting.done()
        slow.go_on.set()
        assert (await waiting).tolist() == [[2]]

    play(act)


def test_requests_that_were_given_up_are_not_computed() -> None:
    async def act(it: Batcher) -> None:
        work = Double()
        work.pause()
        (first,) = ask(it, work, [rows(1)])
        await begun(work)
        second, third = ask(it, work, [rows(2), rows(3)])
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        work.go_on.set()
        assert (await third).tolist() == [[6]]
        assert work.sizes == [1, 1]

    play(act)


@pytest.mark.parametrize("quick", [False, True])
def test_a_service_answers_each_request_as_if_it_were_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    monkeypatch.setattr("spacenet.serve.store.QUICK_SECONDS", 60.0 if quick else 0.0)
    sizes: list[int] = []
    x = blobs([0, 1, 2, 3])[0][::4]
    bad = np.full((1, x.shape[1]), 1e30)
    with service(tmp_path) as it:
        measure = Served.measure
        alone = [it.post("/predict?top=4", json={"inputs": [row]}).json()["predictions"][0] for row in x.tolist()]

        def note_size(served: Served, x: Any, *rest: Any) -> Any:
            sizes.append(len(x))
            return measure(served, x, *rest)

        monkeypatch.setattr(Served, "measure", note_size)

        async def ask_all() -> list[httpx.Response]:
            transport = httpx.ASGITransport(it.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                bodies = [{"inputs": [row]} for row in [*x.tolist(), *bad.tolist()]]
                return await asyncio.gather(*(client.post("/predict?top=4", json=body) for body in bodies))

        *good, refused = asyncio.run(ask_all())
    assert (refused.status_code, "row 0 has a value of magnitude 1.0e+30" in refused.text) == (422, True)
    assert len(x) > 10
    assert max(sizes) > 1, "nothing was computed together"
    for answer, expected in zip(good, alone, strict=True):
        (found,) = answer.json()["predictions"]
        assert [each["label"] for each in found["top"]] == [each["label"] for each in expected["top"]]
        shares = [[each["probability"] for each in one["top"]] for one in (found, expected)]
        np.testing.assert_allclose(shares[0], shares[1], rtol=0, atol=1e-6)
