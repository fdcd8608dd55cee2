"""Types for settings that may be left out; they make the command line's help say so plainly."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg


def default_if_any(default: str) -> str:
    """What the help says of a default; nothing where none is set."""
    return "" if default in ("", "None") else f"(default: {default})"


OptionalInt = Annotated[int | None, arg(metavar="INT", help_behavior_hint=default_if_any)]
OptionalText = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint=default_if_any)]
OptionalPath = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]
Integers = Annotated[tuple[int, ...], arg(metavar="INT …", help_behavior_hint=default_if_any)]
Numbers = Annotated[tuple[float, ...], arg(metavar="NUMBER …", help_behavior_hint=default_if_any)]
Flag = Annotated[bool, arg(help_behavior_hint="")]
