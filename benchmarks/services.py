"""The services that are compared, each in a process of its own: `spacenet serve`, and a plain one of its network."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from spacenet.errors import RunError

START_SECONDS = 60.0
ALONE = """
from spacenet.cli.main import run_and_exit
from spacenet.serve import batching
batching.MAX_SAMPLES = 1
run_and_exit()
"""


@dataclass(frozen=True)
class Running:
    """A service that listens."""

    address: str
    process: psutil.Process

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let it run; before and after it is stopped, so that it takes nothing from another service."""
        self.process.resume()
        try:
            yield
        finally:
            self.process.suspend()

    def cpu_seconds(self) -> float:
        """Processor time that it has taken so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def serve(model: Path, *options: str, alone: bool = False) -> Iterator[Running]:
    """`spacenet serve` of a model file. `alone`: every request is computed alone."""
    start = ["-c", ALONE] if alone else ["-m", "spacenet.cli.main"]
    command = [sys.executable, *start, "serve", str(model), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, _ending(process):
        assert process.stdout is not None
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
        if found is None:
            raise RunError("the service did not start")
        yield Running(found[0], psutil.Process(process.pid))


@contextmanager
def serve_plain(exported: Path) -> Iterator[Running]:
    """The service that one would write, of an ONNX file."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.plain_service", str(exported), str(port)]
    with subprocess.Popen(command) as process, _ending(process):
        _wait_for(port, process)
        yield Running(f"http://127.0.0.1:{port}", psutil.Process(process.pid))


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    began = time.monotonic()
    while time.monotonic() - began < START_SECONDS and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RunError("the plain service did not start")


@contextmanager
def _ending(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
        if hasattr(signal, "SIGCONT"):
            process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    finally:
        process.kill()
