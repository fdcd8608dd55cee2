"""The examples that a person has given and the model has not learned yet, in memory and bounded."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spacenet.serve.messages import RequestError
from spacenet.serve.reading import MAX_LABEL
from spacenet.studio.pictures import Picture

MOST = 2000
"""Examples at a time."""
MOST_BYTES = 256 * 1024**2
"""Of all examples together."""


@dataclass(frozen=True)
class Example:
    """A picture and the class that it shows."""

    number: int
    label: str
    picture: Picture

    @property
    def bytes(self) -> int:
        return self.picture.sample.nbytes + len(self.picture.thumbnail)


class Examples:
    """Examples by number, in the order in which they were given."""

    def __init__(self) -> None:
        self._held: dict[int, Example] = {}
        self._given, self._bytes, self._lock = 0, 0, threading.Lock()

    def __iter__(self) -> Iterator[Example]:
        return iter([*self._held.values()])

    def __len__(self) -> int:
        return len(self._held)

    def check_room(self) -> None:
        """Raise `RequestError` if no further example can be taken."""
        if len(self._held) >= MOST or self._bytes >= MOST_BYTES:
            raise RequestError(f"there are {len(self._held):,} examples that wait to be learned; learn them first", 413)

    def add(self, label: str, picture: Picture) -> Example:
        with self._lock:
            self.check_room()
            self._given += 1
            made = Example(self._given, label, picture)
            self._held[made.number] = made
            self._bytes += made.bytes
        return made

    def __getitem__(self, number: int) -> Example:
        if found := self._held.get(number):
            return found
        raise RequestError("there is no such example, or it has been learned and deleted", 404)

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete examples; those that are gone already are ignored."""
        with self._lock:
            for number in numbers:
                if found := self._held.pop(number, None):
                    self._bytes -= found.bytes

    def clear(self) -> None:
        self.remove([*self._held])


def check_name(text: str) -> str:
    """The name of a class as it is kept. Raises `RequestError` for what is none: it may come from a folder's name."""
    name = " ".join(text.split())
    if not name:
        raise RequestError("the class has no name; type one")
    if len(name) > MAX_LABEL or not name.isprintable():
        raise RequestError(f"the name of a class has at most {MAX_LABEL} characters, all of them printable")
    return name
