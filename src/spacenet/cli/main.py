"""The command line: reads what the user typed, calls the library, prints. Nothing else."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from spacenet.errors import SpacenetError

USAGE = """\
usage: spacenet COMMAND …

  run [STREAM]       learn a stream of tasks      (spacenet run --help)
  compare [STREAM]   several methods, one table   (spacenet compare --help)
  sweep [STREAM]     search a method's settings   (spacenet sweep --help)
  report DIR …       a page that shows what runs did, or a comparison

  learn MODEL        add classes to a saved model (spacenet learn --help)
  predict MODEL …    name the class of inputs     (spacenet predict --help)
  inspect MODEL      what a model holds, and how much space is left
  export MODEL       write it as ONNX or for torch alone
  serve MODEL        answer over HTTP             (spacenet serve --help)

  data list          the data sets, and where they are
  data fetch NAME    get a data set
  --version          print the version

streams: split-digits (embedded), split-mnist, split-fashion-mnist, split-cifar-10, icifar-100, cifar-10-100,
         or your own with --npz FILE
"""


COMMANDS = ("run", "compare", "sweep", "report", "learn", "predict", "inspect", "export", "serve", "data")
"""Each is a function of the module of the same name in `spacenet.cli`; it returns the exit code."""


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
    if name not in COMMANDS:
        return _complain(f"there is no command {name!r}; there are {', '.join(COMMANDS)} (see spacenet --help)")
    try:
        # Imported only now: nobody should wait for what another command needs.
        command: Callable[[list[str]], int] = getattr(import_module(f"spacenet.cli.{name}"), name)
        return command(rest)
    except SpacenetError as error:
        return _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        return 141  # whoever read our output has left


def _complain(message: str, code: int = 2) -> int:
    print(f"spacenet: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
