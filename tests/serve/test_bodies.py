"""Memory for bodies: taken for what has arrived, bounded in sum, and never held against those that are faster."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request

from spacenet.serve import bodies
from spacenet.serve.bodies import Bodies
from spacenet.serve.messages import RequestError

KIB = 1024
LARGEST = 256 * KIB


def _request(stream: AsyncIterator[bytes]) -> Request:
    async def receive() -> dict[str, object]:
        try:
            return {"type": "http.request", "body": await anext(stream), "more_body": True}
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}

    return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)


async def _fast(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // KIB // 16):
        yield b" " * 16 * KIB


async def _stalled(size: int) -> AsyncIterator[bytes]:
    yield b" " * size
    await asyncio.sleep(60)


async def _trickle() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 4 * KIB
        await asyncio.sleep(0.02)


async def _received(memory: Bodies, stream: AsyncIterator[bytes], work: float = 0.0) -> int:
    """The length of a body, or the status with which it was refused."""
    try:
        async with memory.receive(_request(stream)) as body:
            assert memory.used <= memory.total
            await asyncio.sleep(work)
            return len(body)
    except RequestError as error:
        return error.status


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(bodies, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(bodies, "LARGE_AT_ONCE", 2)


def test_announced_bytes_take_no_memory() -> None:
    async def play() -> None:
        memory = Bodies(LARGEST)
        stalled = [asyncio.create_task(_received(memory, _stalled(70 * KIB))) for _ in range(20)]
        await asyncio.sleep(0.05)
        assert memory.used == 20 * 6 * KIB
        async with asyncio.timeout(1):
            assert await _received(memory, _fast(LARGEST)) == LARGEST
        for each in stalled:
            each.cancel()
        await asyncio.gather(*stalled, return_exceptions=True)
        assert memory.used == 0

    asyncio.run(play())


def test_stalled_bodies_make_room_when_the_memory_is_full() -> None:
    async def play() -> None:
        memory = Bodies(LARGEST)
        stalled = [asyncio.create_task(_received(memory, _stalled(192 * KIB))) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert memory.used == memory.total
        async with asyncio.timeout(3):
            assert await _received(memory, _fast(LARGEST)) == LARGEST
        assert 503 in [each.result() for each in stalled if each.done()]
        for each in stalled:
            each.cancel()

    asyncio.run(play())


def test_bodies_that_come_in_drops_leave_half_of_the_memory() -> None:
    async def play() -> None:
        memory = Bodies(LARGEST)
        slow = [asyncio.create_task(_received(memory, _trickle())) for _ in range(20)]
        await asyncio.sleep(1.0)
        for _ in range(5):
            async with asyncio.timeout(1):
                assert await _received(memory, _fast(LARGEST)) == LARGEST
        for each in slow:
            each.cancel()

    asyncio.run(play())


def test_bodies_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    async def play() -> list[int]:
        memory = Bodies(LARGEST)
        async with asyncio.timeout(5):
            return await asyncio.gather(*(_received(memory, _fast(LARGEST), work=0.1) for _ in range(8)))

    lengths = asyncio.run(play())
    assert set(lengths) <= {LARGEST, 503}
    assert lengths.count(LARGEST) >= 2


def test_room_is_made_by_the_slow_body_that_holds_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dismissing those that hold little would make no room, and their clients would be back at once."""
    monkeypatch.setattr(bodies, "SLOW_RATE", 16 * 1024 * KIB)

    async def play() -> list[int | None]:
        memory = Bodies(LARGEST)
        sizes = [70, 70, 250, 70, 246]
        slow = [asyncio.create_task(_received(memory, _stalled(size * KIB))) for size in sizes]
        await asyncio.sleep(0.2)
        async with asyncio.timeout(3):
            assert await _received(memory, _fast(LARGEST)) == LARGEST
        ended = [each.result() if each.done() else None for each in slow]
        for each in slow:
            each.cancel()
        return ended

    assert asyncio.run(play()) == [None, None, 503, None, None]


def test_a_flood_is_read_at_a_bounded_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGE_RATE", 1024 * KIB)
    monkeypatch.setattr(bodies, "MODERATE", 64 * KIB)

    async def flood() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 128 * KIB

    async def play() -> float:
        clock = asyncio.get_running_loop().time
        began = clock()
        assert await _received(Bodies(512 * KIB), flood()) == 3 * 128 * KIB
        return clock() - began

    assert asyncio.run(play()) > 0.3
