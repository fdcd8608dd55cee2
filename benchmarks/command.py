"""What the measuring commands share: reading options, a console to print tables to, and keeping the figures."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import tyro
from rich.console import Console

from spacenet.errors import SpacenetError
from spacenet.experiments.callbacks import Callback, LineLogger


class WithJson(Protocol):
    """Options that say where the raw figures go."""

    @property
    def json(self) -> Path | None: ...


Options = TypeVar("Options")
Measurable = TypeVar("Measurable", bound=WithJson)
PLAIN_WIDTH = 140
"""Elsewhere than in a terminal rich would fold tables to 80 columns."""


def read_options(kind: type[Options], name: str, arguments: list[str] | None) -> Options:
    """The options of `python -m benchmarks.NAME`."""
    return tyro.cli(kind, prog=f"python -m benchmarks.{name}", args=arguments, config=(tyro.conf.FlagCreatePairsOff,))


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def progress() -> Callback:
    """Lines that say how far a run is, where they are not in the way of tables."""
    return LineLogger(partial(print, file=sys.stderr, flush=True))


def load() -> float | None:
    """How many processes this machine has had to run in the last minute, where it says so."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def reported(name: str, act: Callable[[], int]) -> int:
    """The exit code of `python -m benchmarks.NAME`: what `act` returns, or that of an error, which is printed."""
    try:
        return act()
    except SpacenetError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code


def measured(
    name: str,
    options: Measurable,
    measure: Callable[[Measurable, Console], Mapping[str, Any]],
    exit_code: Callable[[Mapping[str, Any]], int] = lambda figures: 0,
) -> int:
    """Measure, keep the figures if they are wanted; the exit code, which may depend on them."""

    def act() -> int:
        figures = measure(options, console())
        keep(figures, options.json)
        return exit_code(figures)

    return reported(name, act)


def keep(figures: Mapping[str, Any], path: Path | None) -> None:
    """Write the raw figures, if somebody wants them."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
