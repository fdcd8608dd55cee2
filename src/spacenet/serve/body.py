"""Reading a request's body in bounded memory, also from clients that do not say how long it is, or never end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from spacenet.serve.errors import RequestError

SMALL = 64 * 1024
LARGE_AT_ONCE = 8
"""Requests with more than `SMALL` bytes that are received and worked on at the same time; others wait."""
SECONDS = 60.0
"""For a body to arrive."""


class BodyReader:
    """Reads the bodies of requests."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The body; its memory counts as taken until the end of the block."""
        claimed = request.headers.get("content-length", "")
        if claimed.isascii() and claimed.isdigit() and (len(claimed) > 18 or int(claimed) > self.most):
            raise self._too_large()
        body, large = bytearray(), False
        try:
            async with asyncio.timeout(SECONDS):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > self.most:
                        raise self._too_large()
                    if len(body) + len(chunk) > SMALL and not large:
                        await self._large.acquire()
                        large = True
                    body += chunk
            yield bytes(body)
        except TimeoutError as error:
            raise RequestError(408, f"the body did not arrive within {SECONDS:.0f} s") from error
        finally:
            if large:
                self._large.release()

    def _too_large(self) -> RequestError:
        return RequestError(413, f"the body is larger than {self.most / 1024**2:g} MiB; send less at a time")
