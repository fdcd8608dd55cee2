"""Where a search may look for a setting's best value. A method declares its own ranges."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Between:
    """Any number from `low` to `high`; on a logarithmic scale where only the order of magnitude is in doubt."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    """Whole numbers only."""


@dataclass(frozen=True)
class Among:
    """One of these values. They may be lists, as a TOML file holds them."""

    values: tuple[Any, ...]


Range = Between | Among
