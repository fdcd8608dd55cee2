"""The `spacenet` command: finds the command that was asked for, and turns errors into messages and exit codes."""

import atexit
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import NoReturn

from spacenet.errors import SpacenetError
from spacenet.registry import STREAMS, unknown
from spacenet.utils.processes import describe_interrupt, sigterm_raises

COMMANDS = {
    "run": ("[DATA]", "learn a stream of tasks with one method"),
    "compare": ("[DATA]", "run several methods and put them in one table"),
    "sweep": ("[DATA]", "search a method's settings on held-out data"),
    "report": ("DIR …", "make the page of a run or a comparison again"),
    "fit": ("DATA", "make a model from data of your own"),
    "tune": ("DATA", "train a pretrained encoder on the first classes"),
    "learn": ("MODEL DATA", "add classes to a saved model"),
    "edit": ("MODEL ACTION …", "rename, merge or remove classes of a saved model, or undo"),
    "predict": ("MODEL INPUT …", "predict the class of inputs"),
    "evaluate": ("MODEL DATA …", "measure a model on labeled data: tasks, classes, calibration"),
    "inspect": ("MODEL", "show what a model holds and how much space is left"),
    "export": ("MODEL", "write a model as ONNX, for torch or for MLflow"),
    "serve": ("MODEL", "serve a model over HTTP"),
    "studio": ("[MODEL]", "teach a model in the browser"),
    "data": ("list | fetch NAME", "list the data sets, or download one"),
}
"""The arguments and the summary of each command, a function of the module of the same name in `spacenet.cli`."""

CONTINUED = ("compare", "sweep")
"""Commands that go on where they stopped when they are given again."""


def usage() -> str:
    """The overview of all commands."""
    lines = [(f"  {name} {arguments}", summary) for name, (arguments, summary) in COMMANDS.items()]
    width = max(len(line) for line, _ in lines) + 3
    texts = "\n".join(f"{line:{width}}{summary}" for line, summary in lines)
    return f"""usage: spacenet COMMAND …

{texts}

spacenet COMMAND --help shows the options of a command, spacenet --version the version.
DATA is a stream, {", ".join(STREAMS)},
or data of your own: .npz, .csv, .parquet, or a folder with one sub-folder per class.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `spacenet` command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print(usage(), end="")
        return 0
    if name == "--version":
        from spacenet import __version__

        print(__version__)
        return 0
    if name not in COMMANDS:
        return _fail(f"{unknown('command', name, list(COMMANDS))}")
    _log_to_stderr()
    try:
        if name == "run":
            _read_ahead(rest)
        # Imported only now: a command should not wait for what another one needs.
        command: Callable[[list[str]], int] = getattr(import_module(f"spacenet.cli.{name}"), name)
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        with sigterm_raises() if name in ("run", *CONTINUED) else nullcontext():
            return command(rest)
    except SpacenetError as error:
        return _fail(error.for_cli(), error.exit_code)
    except KeyboardInterrupt as error:
        what, code = describe_interrupt(error)
        return _fail(f"{what}{'; the same command continues where it stopped' if name in CONTINUED else ''}", code)
    except BrokenPipeError:
        return 141  # the reader of our output has left
    except OSError as error:  # a full disk, a folder without permission, one that is gone
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")


def _read_ahead(arguments: Sequence[str]) -> None:
    """Begin to read the data of a run while its libraries are imported."""
    named = [name for name in STREAMS if name in arguments]
    if len(named) == 1 and {"--help", "-h", "--resume", "--data-dir"}.isdisjoint(arguments):
        from spacenet.data.datasets import get_dataset
        from spacenet.data.fetch import environment_folder

        get_dataset(STREAMS[named[0]].dataset).read_ahead(environment_folder())


class _StderrHandler(logging.Handler):
    """Prints messages of the library; to whatever standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr, flush=True)


def _log_to_stderr() -> None:
    log = logging.getLogger("spacenet")
    if not any(isinstance(handler, _StderrHandler) for handler in log.handlers):
        log.addHandler(_StderrHandler())
        log.setLevel(logging.INFO)
        log.propagate = False


def _fail(message: str, code: int = 2) -> int:
    print(f"spacenet: {message}", file=sys.stderr)
    return code


def run_and_exit() -> NoReturn:
    """Run the command and end the process without the interpreter's clean-up, which takes torch a third of a second."""
    gc.disable()  # until everything is imported: there is no garbage, and looking for it takes a tenth of the time
    code = main()
    try:
        # What the interpreter does first at its end: threads are joined, then libraries tidy up worker processes.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = 141
    os._exit(code)


if __name__ == "__main__":
    run_and_exit()
