"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_CHANGING = RLock()


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Compute with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, where a result must not depend on their number to the last bit."""
    with _CHANGING, use_threads(1):
        yield
