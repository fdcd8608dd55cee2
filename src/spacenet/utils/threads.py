"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_CHANGING = RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, where a result must not depend on their number to the last bit."""
    with _CHANGING:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
