"""The process that learns a task: `python -m spacenet.serve.worker MODEL DATA NEW [BLANK]`.

With BLANK there is no model file yet, and it makes a model of the settings in there. It reports in lines of JSON, and
ends when the process that started it does.
"""

import json
import os
import sys
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.errors import DataError, SpacenetError
from spacenet.model.file import load_model, save_model
from spacenet.serve.blank import Blank
from spacenet.training.loop import Epoch
from spacenet.utils.files import report_os_errors


def learn(model_file: Path, data: Path, new: Path, blank: Path | None = None) -> None:
    """Learn the data with the model in a file, and write the new model to another file."""

    def report(epoch: Epoch) -> None:
        _report(epoch=epoch.epoch + 1, epochs=epoch.epochs, loss=epoch.loss, accuracy=epoch.accuracy)

    model = load_model(model_file) if blank is None else Blank.load(blank).new_model()
    threads = model.config.training.threads
    try:
        with report_os_errors(data, "read"), data.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            x, y = arrays["x"], arrays["y"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{data.name} does not hold samples and labels ({error})") from error
    one = model.config.replace(threads=1)  # the other threads are for predictions
    model.learn(x, y, config=one, on_epoch=report)
    model.config = model.config.replace(threads=threads)
    save_model(new, model)


def main(arguments: Sequence[str]) -> int:
    try:
        learn(*map(Path, arguments))
    except SpacenetError as error:
        _report(error=error.message)
        return error.exit_code
    except Exception as error:
        _report(error=f"unexpected: {type(error).__name__}: {error}")
        raise
    return 0


def _report(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def _end_with_parent() -> None:
    os.read(0, 1)  # the service holds the other end, and writes nothing
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(10)
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # without tidying up, which takes torch a second
