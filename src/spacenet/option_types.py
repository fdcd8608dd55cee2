"""Types for settings that may be left out; they make the command line's help say so plainly."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

OptionalInt = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
OptionalText = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]
Integers = Annotated[tuple[int, ...], arg(metavar="INT …", help_behavior_hint="")]
Numbers = Annotated[tuple[float, ...], arg(metavar="NUMBER …", help_behavior_hint="")]
Flag = Annotated[bool, arg(help_behavior_hint="")]
