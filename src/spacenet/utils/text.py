"""Numbers and names as text for people."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MeanStd:
    """Mean and standard deviation over seeds; a single value has no standard deviation."""

    mean: float
    std: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        mean = math.fsum(values) / len(values)
        if len(values) == 1:
            return cls(mean)
        return cls(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)))

    def __str__(self) -> str:
        return format_mean_std(self.mean, self.std)


def format_bytes(number: float) -> str:
    """A size: 512 B, 129.7 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def format_seconds(seconds: float) -> str:
    """A duration: 2.4 s, 35 min, 2.1 h."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_mean_std(mean: float | None = None, std: float | None = None) -> str:
    """A mean, ± its standard deviation if there is one; an empty text if there is neither."""
    if mean is None:
        return ""
    return f"{mean:z.2f}" if std is None else f"{mean:z.2f} ± {std:.2f}"


def plural(count: int, noun: str, ending: str = "s") -> str:
    """1 task, 1,000 tasks."""
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def printable(text: object) -> str:
    """A label or file name on one line, with nothing in it that controls a terminal."""
    plain = str(text)
    return plain if plain.isprintable() else plain.encode("unicode_escape").decode("ascii")
