"""Programs that start at once: this process, which has imported torch already, is forked instead of starting Python.

`start` is `subprocess.Popen` for `spacenet …` and `python …`, `run` is `subprocess.run` for what starts
`sys.executable`. `run_script` runs a shell script whose `spacenet` and `python` are started like that. To them the
machine has one core.
"""

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from spacenet.cli.main import COMMANDS, run_and_exit

PRELOADED = (
    *(f"spacenet.cli.{name}" for name in COMMANDS),
    "spacenet.model.estimator",
    "spacenet.report.page.build",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "sklearn.datasets",
    "sklearn.model_selection",
)
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
command = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
socket.send_fds(server, [json.dumps([command, os.getcwd()]).encode()], [0, 1, 2])
pid = int(server.recv(20))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
code = int(server.recv(20))
sys.exit(code if code >= 0 else 128 - code)
"""
"""Stands on the path as `spacenet` and `python`: has the command started where it is, and ends as it ends."""


def start(
    command: Sequence[str], environment: Mapping[str, str] | None = None, files: int | None = None, **options: Any
) -> Any:
    """Start `spacenet …`, `python -c CODE …`, `python -m MODULE …`, `python FILE …` or `python -` in a fork.

    `environment` is added to this one's; `files` limits how many it may open.
    """

    def become() -> None:
        try:
            os.closerange(3, 4096)
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            _become(command, environment or {})
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)

    for name in PRELOADED:
        import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later: threads of the parent
        return subprocess.Popen(["never executed"], preexec_fn=become, **options)


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> Any:
    """Take the place of `subprocess.run` where a program starts Python and wants what it prints."""
    process = start(["python", *command[1:]], env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    atexit._clear()  # what the parent does in the end
    threading._threading_atexits.clear()  # type: ignore[attr-defined]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts; Popen has reset it
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    os.environ.update(environment)
    os.cpu_count = lambda: 1  # workers of its own would have to start Python
    program, *arguments = command
    if program == "spacenet":
        sys.argv = ["spacenet", *arguments]
        run_and_exit()
    os._exit(_run_python(arguments))


def _run_python(arguments: Sequence[str]) -> int:
    """What `python ARGUMENTS` does, and its exit code."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    if arguments[0] == "-c":
        code, sys.argv = arguments[1], ["-c", *arguments[2:]]
        sys.path.insert(0, "")
    elif arguments[0] == "-m":
        code, sys.argv = (
            f"import runpy; runpy.run_module({arguments[1]!r}, None, '__main__', True)",
            list(arguments[1:]),
        )
        sys.path.insert(0, "")
    elif arguments[0] == "-":
        code, sys.argv = sys.stdin.read(), list(arguments)
        sys.path.insert(0, "")
    else:
        code, sys.argv = Path(arguments[0]).read_text(encoding="utf-8"), list(arguments)
        sys.path.insert(0, str(Path(arguments[0]).parent))
    status = 0
    try:
        exec(compile(code, sys.argv[0], "exec"), vars(main))
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def run_script(script: str, folder: Path, *, timeout: float, columns: int = 100) -> tuple[int, str, str]:
    """Run a bash script in a folder: its exit code, what it printed and its messages."""
    with TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as server:
        address, beside = f"{place}/socket", Path(place)
        server.bind(address)
        server.listen()
        for name in ("spacenet", "python"):
            (beside / name).write_text(CLIENT.format(python=sys.executable, address=address))
            (beside / name).chmod(0o755)
        environment = {"PATH": f"{place}:{os.environ['PATH']}", "COLUMNS": str(columns)}
        with (beside / "out").open("w+") as out, (beside / "err").open("w+") as err:
            shell = subprocess.Popen(
                ["bash", "-c", script], cwd=folder, env={**os.environ, **environment}, stdout=out, stderr=err
            )
            try:
                _serve(server, shell, environment, timeout)
            finally:
                shell.kill()
                shell.wait()
            return shell.returncode, (beside / "out").read_text(), (beside / "err").read_text()


def _serve(
    server: socket.socket, shell: "subprocess.Popen[bytes]", environment: Mapping[str, str], timeout: float
) -> None:
    """Start what the shell asks for until it ends."""
    running: list[tuple[subprocess.Popen[str], socket.socket]] = []
    waited = 0.0
    while shell.poll() is None:
        if waited > timeout:
            raise TimeoutError(f"the script takes more than {timeout:.0f} s")
        if select.select([server], [], [], 0.02)[0]:
            connection, _ = server.accept()
            message, descriptors, _, _ = socket.recv_fds(connection, 100_000, 3)
            command, folder = json.loads(message)
            stdin, stdout, stderr = descriptors
            process = start(command, environment, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr)
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(f"{process.pid}".encode())
            running.append((process, connection))
        else:
            waited += 0.02
        for process, connection in [each for each in running if each[0].poll() is not None]:
            connection.sendall(f"{process.returncode}".encode())
            connection.close()
            running.remove((process, connection))
    for process, connection in running:
        process.terminate()
        process.wait()
        connection.close()
