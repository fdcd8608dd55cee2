"""Where a search may look for a setting's best value. A method declares its own ranges."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Uniform:
    """Any number from `low` to `high`, optionally on a logarithmic scale or integers only."""

    low: float
    high: float
    log: bool = False
    integer: bool = False


@dataclass(frozen=True)
class Choice:
    """One of these values. They may be lists, as a TOML file holds them."""

    values: tuple[Any, ...]


Range = Uniform | Choice
