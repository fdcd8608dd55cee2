"""The command line: reads what the user typed, calls the library, prints. Nothing else."""

import sys
from collections.abc import Callable, Sequence

from spacenet.errors import SpacenetError

USAGE = """\
usage: spacenet COMMAND …

  run [STREAM]       learn a stream of tasks      (spacenet run --help)
  compare [STREAM]   several methods, one table   (spacenet compare --help)
  sweep [STREAM]     search a method's settings   (spacenet sweep --help)
  data list          the data sets, and where they are
  data fetch NAME    get a data set
  --version          print the version

streams: split-digits (embedded), split-mnist, split-fashion-mnist, split-cifar-10, icifar-100, cifar-10-100,
         or your own with --npz FILE
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `spacenet` command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if name == "--version":
        from spacenet import __version__

        print(__version__)
        return 0
    commands: dict[str, Callable[[list[str]], int]] = {"run": _run, "compare": _compare, "sweep": _sweep, "data": _data}
    if name not in commands:
        return _complain(f"there is no command {name!r}; there are {', '.join(commands)} (see spacenet --help)")
    try:
        return commands[name](rest)
    except SpacenetError as error:
        return _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        return 141  # whoever read our output has left


def _run(arguments: list[str]) -> int:
    from spacenet.commands.run import run

    return run(arguments)


def _compare(arguments: list[str]) -> int:
    from spacenet.commands.compare import compare

    return compare(arguments)


def _sweep(arguments: list[str]) -> int:
    from spacenet.commands.sweep import sweep

    return sweep(arguments)


def _data(arguments: list[str]) -> int:
    from spacenet.commands.data import data

    return data(arguments)


def _complain(message: str, code: int = 2) -> int:
    print(f"spacenet: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
