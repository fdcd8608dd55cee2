"""Bodies of requests, received in bounded memory and time whatever clients send, or do not send.

Memory counts when bytes have arrived, not when they are announced, so a client that stalls holds only what it sent.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.requests import ClientDisconnect, Request

from spacenet.serve.limits import Limits, Workload
from spacenet.serve.messages import RequestError

SMALL = 64 * 1024
"""Bytes of a body that need no place in the memory for large ones; the number of connections bounds their sum."""
LARGE_AT_ONCE = 8
"""The memory for large bodies suffices for so many of the largest that are allowed."""
WAIT_SECONDS = 10.0
"""How long a client may send nothing."""
MIN_RATE = 16 * 1024
"""Bytes per second that a client has to send on average, beyond `WAIT_SECONDS`."""
SLOW_RATE = 256 * 1024
"""Bodies that arrive with fewer bytes per second share half of the memory, and the largest of them has to make room."""
SLOW_SECONDS = 1.0
"""… if the service has waited for them that long."""
MODERATE = 1024**2
"""Bytes of a body that are read as fast as they come; what is larger takes turns."""
LARGE_RATE = 32 * 1024**2
"""Bytes per second of these, all together, that the service reads: it has other requests to answer."""
RETRY_SECONDS = 0.25


def draw_patience() -> float:
    """Seconds that a client gets at first. They vary, lest many that came at once are also dealt with at once."""
    return WAIT_SECONDS * random.uniform(0.8, 1.0)


class Arrival:
    """A body that is being received."""

    def __init__(self, now: float) -> None:
        self.received = self.taken = 0  # bytes; those of the memory for large bodies
        self.seconds, self.asked = 0.0, now  # how long the service waited for the client, and since when it does
        self.patience = draw_patience()
        self.waits_for_memory = self.dismissed = False
        self.limit = asyncio.timeout(None)

    def note(self, size: int, now: float) -> None:
        waited = now - self.asked
        self.received, self.seconds = self.received + size, self.seconds + waited
        self.patience = min(WAIT_SECONDS, self.patience - waited + size / MIN_RATE)

    def rate(self, now: float) -> float:
        """Bytes per second, which is infinite at first."""
        seconds = self.seconds if self.waits_for_memory else self.seconds + now - self.asked
        return self.received / seconds if seconds >= SLOW_SECONDS else math.inf

    def dismiss(self) -> None:
        self.dismissed = True
        with suppress(RuntimeError):  # its time is over just now
            self.limit.reschedule(0.0)


class Bodies:
    """Receives bodies of at most `max_bytes` each, and admits so much work for them."""

    def __init__(self, max_bytes: int, limits: Limits | None = None) -> None:
        self.max_bytes, self.total, self.used = max_bytes, LARGE_AT_ONCE * max_bytes, 0
        self.workload = Workload(limits or Limits())
        self._arriving: set[Arrival] = set()
        self._turn, self._slow, self._fast = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """A request's body. Its memory counts as taken, and the request as in work, until the end of the block."""
        claimed = request.headers.get("content-length", "")
        if claimed.isascii() and claimed.isdigit() and (len(claimed) > 18 or int(claimed) > self.max_bytes):
            raise self._too_large()
        self.workload.check_room()
        arrival = Arrival(asyncio.get_running_loop().time())
        self._arriving.add(arrival)
        try:
            body = await self._collect(request, arrival)
            self._arriving.discard(arrival)
            async with self.workload.admit():
                yield body
        finally:
            self._arriving.discard(arrival)
            if arrival.taken:
                self.used -= arrival.taken
                self._freed.set()

    async def _collect(self, request: Request, arrival: Arrival) -> bytes:
        clock = asyncio.get_running_loop().time
        chunks: list[bytes] = []  # not one array that grows: moving it would hold up all other requests
        try:
            async with arrival.limit as limit:
                limit.reschedule(arrival.asked + arrival.patience)
                more = True
                while more:
                    message = await request.receive()
                    limit.reschedule(None)  # what follows is not the client's time
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    arrival.note(len(chunk), clock())
                    if arrival.received > self.max_bytes:
                        raise self._too_large()
                    if arrival.received > SMALL:
                        await self._take(arrival, arrival.received - SMALL - arrival.taken)
                    chunks.append(chunk)
                    arrival.asked = clock()
                    if more or arrival.dismissed:
                        limit.reschedule(0.0 if arrival.dismissed else arrival.asked + arrival.patience)
            return b"".join(chunks)
        except TimeoutError as error:
            if arrival.dismissed:
                reason = "too many large requests arrive at the same time; try again later"
                raise RequestError(reason, 503, retry_after=1) from error
            reason = f"the body did not arrive in time: at least {MIN_RATE // 1024} KiB per second are needed"
            raise RequestError(reason, 408) from error
        finally:
            chunks.clear()  # now: the frames of an error may live on until the garbage collector comes

    def _too_large(self) -> RequestError:
        return RequestError(f"the body is larger than {self.max_bytes / 1024**2:g} MiB; send less at a time", 413)

    async def _take(self, arrival: Arrival, size: int) -> None:
        """Take memory as soon as there is some."""
        arrival.waits_for_memory = True
        if arrival.received > MODERATE and size >= SMALL:  # at full speed: other requests come between
            async with self._turn:
                await asyncio.sleep(size / LARGE_RATE)
        if arrival.rate(asyncio.get_running_loop().time()) < SLOW_RATE:
            await self._take_in_turn(self._slow, self.total // 2, size)
        else:
            await self._take_in_turn(self._fast, self.total, size)
        arrival.taken += size
        arrival.waits_for_memory = False

    async def _take_in_turn(self, queue: asyncio.Lock, limit: int, size: int) -> None:
        async with queue:
            while self.used + size > limit:
                self._make_room(asyncio.get_running_loop().time())
                self._freed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_SECONDS):
                        await self._freed.wait()
            self.used += size

    def _make_room(self, now: float) -> None:
        """Dismiss the slow body that holds most, or the slowest of all if bodies wait only for each other's memory.

        Those that hold little make no room, and their clients would be back at once.
        """
        holders = [each for each in self._arriving if each.taken or each.waits_for_memory]
        if any(each.dismissed for each in holders):
            return  # its memory is about to be free
        slow = [each for each in holders if each.rate(now) < SLOW_RATE]
        in_work = self.used - sum(each.taken for each in holders)
        if slow:
            max(slow, key=lambda each: each.taken).dismiss()
        elif not in_work and all(each.waits_for_memory for each in holders):
            min(holders, key=lambda each: each.rate(now)).dismiss()
