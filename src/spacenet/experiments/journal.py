"""The journal of a search: a file with one line of JSON for each step. Optuna keeps its studies in such files.

Optuna's own file waits half a minute for the lock of a process that was killed, and does not go on after half a line.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacenet.utils.files import report_os_errors
from spacenet.utils.lock import lock


class Journal:
    """What optuna's `JournalStorage` needs: lines are read from some number on, and appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0, 0
        """How many lines have been read, and the bytes that they take."""

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The lines from this number on. A last one without an end is none: the process was stopped in the middle."""
        if not self.path.is_file():
            return
        first, start = self._read if self._read[0] == log_number_from else (0, 0)
        with report_os_errors(self.path, "read"), self.path.open("rb") as file:
            file.seek(start)
            lines = file.read().splitlines(keepends=True)
        for number, line in enumerate(lines, first):
            if not line.endswith(b"\n"):
                break
            start += len(line)
            self._read = number + 1, start
            if number >= log_number_from:
                yield json.loads(line)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append lines; they are on the disk when this returns. Half a line at the end is removed first."""
        content = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        # Without a buffer: closing the file must not write once more what could not be written.
        with (
            report_os_errors(self.path, "written"),
            lock(self.path),
            self.path.open("a+b", buffering=0) as file,
        ):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            while content:
                content = content[file.write(content) :]
            os.fsync(file.fileno())
