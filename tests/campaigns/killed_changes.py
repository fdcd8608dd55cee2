"""Kill what changes a model file at random moments: `python -m tests.campaigns.killed_changes --kills 20`.

`spacenet learn` and `spacenet edit`: after the kill the file is the old one or the one that an uninterrupted command
makes, byte for byte; the version before is undone to the old one; and the same command ends in the new one.

A service with a queue of jobs is killed with its worker, started again, and killed again; then one more goes on to the
end. All jobs that were accepted must be done, each once: the file must be the one that the same changes make without a
kill, byte for byte, unless a job is reported as lost.
"""

import argparse
import io
import logging
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import torch

from spacenet.cli.main import main as run_command
from spacenet.errors import ModelFileError
from spacenet.model.editing import Edit, edit_file
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo
from spacenet.serve import worker
from spacenet.serve.history import History
from spacenet.serve.jobs import Jobs, Process
from spacenet.serve.messages import Job
from spacenet.serve.queued import QueuedJob
from spacenet.serve.store import Store
from tests.campaigns.invariants import check_folder, expect
from tests.model.support import blobs, model
from tests.warm import start

FORK = multiprocessing.get_context("fork")  # libraries are imported already, so a process starts at once
NAME = "model.safetensors"
PATIENCE = 120.0
COMMANDS: dict[str, tuple[str, ...]] = {
    "learn": ("learn", "MODEL", "DATA", "--quiet"),
    "edit rename": ("edit", "MODEL", "rename", "0", "zero"),
    "edit forget": ("edit", "MODEL", "forget", "1", "--keep-undo"),
    "edit undo": ("edit", "MODEL", "undo"),
}
CHANGES: tuple[tuple[str, ...] | Edit, ...] = (
    ("cat", "dog"),
    Edit("rename", ("cat",), "lion"),
    ("fox",),
    Edit("forget", (0,)),
    Edit("merge", ("lion", "dog"), "pet"),
    Edit("undo"),
    ("owl", "emu"),
    Edit("rename", (1,), 7),
)
"""What a service is asked for: labels to learn, and edits."""


@dataclass
class Tally:
    """What has become of the kills of one kind."""

    kills: int = 0
    before: int = 0
    """Kills after which the file was as before; for services, after which a job had to be taken up again."""
    lost: list[str] = field(default_factory=list)
    """What was said of jobs that were lost."""
    problems: list[str] = field(default_factory=list)

    def row(self, kind: str) -> str:
        return f"{kind:<24}{self.kills:>8}{self.before:>18}{len(self.lost):>15}{len(self.problems):>12}"


HEADING = f"{'what was killed':<24}{'kills':>8}{'to be done again':>18}{'jobs lost':>15}{'problems':>12}"


def kill_after(seconds: float, work: Callable[..., object], *args: Any) -> bool:
    """Do the work in a process of its own and kill it after so many seconds; whether it was still there."""
    process = FORK.Process(target=work, args=args)
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode != 0


# Commands


def _command(name: str, path: Path) -> None:
    torch.set_num_threads(1)
    data = path.parent.parent / "data.npz"
    arguments = [{"MODEL": str(path), "DATA": str(data)}.get(word, word) for word in COMMANDS[name]]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        sys.exit(run_command(arguments))


def _prepare(folder: Path) -> Path:
    """A model that has been changed once, and data for another task."""
    path = folder / "models" / NAME
    path.parent.mkdir()
    save_model(path, model())
    edit_file(path, Edit("rename", (3,), "three"))
    x, y = blobs(["cat", "dog"])
    np.savez(folder / "data.npz", x=x, y=y)
    return path


def kill_commands(name: str, kills: int, seed: int = 0) -> Tally:
    """Kill a command at random moments until it was killed so many times before its end."""
    chance, tally = random.Random(f"{name} {seed}"), Tally()
    with tempfile.TemporaryDirectory() as place:
        path = _prepare(Path(place))
        held = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        began = time.monotonic()
        kill_after(PATIENCE, _command, name, path)
        seconds, old, new = time.monotonic() - began, held[NAME], path.read_bytes()
        expect(old != new, f"{name} changes nothing")
        while tally.kills < kills:
            for each in path.parent.iterdir():
                each.unlink()
            for kept, content in held.items():
                (path.parent / kept).write_bytes(content)
            since = chance.choice((0.0, 0.8 * seconds))  # files are written at the end
            if not kill_after(chance.uniform(since, seconds), _command, name, path):
                continue
            tally.kills += 1
            tally.problems += check_command(name, path, old, new, tally)
    return tally


def check_command(name: str, path: Path, old: bytes, new: bytes, tally: Tally) -> list[str]:
    """What is wrong after a kill."""
    problems, found = [], path.read_bytes()
    if found not in (old, new):
        return [f"{name}: the file is neither the old one nor the new one"]
    tally.before += found == old
    if found == old:
        kill_after(PATIENCE, _command, name, path)
        if path.read_bytes() != new:
            problems.append(f"{name}: the same command again does not make the new file")
    if name != "edit undo":
        undo(path)
        if path.read_bytes() != old:
            problems.append(f"{name}: undo does not give the old file")
    try:
        undo(path)
        problems.append(f"{name}: undo works twice")
    except ModelFileError:
        pass
    left = sorted(each.name for each in path.parent.iterdir() if not each.name.endswith((".lock", ".undo")))
    if left != [NAME]:
        problems.append(f"{name}: left behind: {left}")
    return problems


# The service


class _Jobs(Jobs):
    def start_process(self, current: QueuedJob) -> Process:
        files = [self.store.path, current.data, current.new]
        command = ["python", "-m", worker.__name__, *map(str, files)]
        process: Process = start(command, stdin=PIPE, stdout=PIPE, text=True)
        return process


def _serve(path: Path, first: int, out: Connection) -> None:
    """Submit the changes from one on, say which were accepted, and work until all jobs are over."""
    torch.set_num_threads(1)
    jobs = _Jobs(Store(path))
    for number, change in enumerate(CHANGES[first:], start=first + 1):
        if isinstance(change, Edit):
            job = jobs.submit_edit(change.action, change.labels, change.into)  # type: ignore[arg-type]
        else:
            job = jobs.submit_learn(*blobs(list(change)))
        expect(job.number == number, f"job {job.number} should be {number}")
        out.send(number)
    for job in jobs.list():
        jobs.wait(job.number, PATIENCE)
    jobs.close()
    out.send("over")


def make_expected(path: Path) -> list[bytes]:
    """The file after each number of changes, none of which is interrupted."""
    found = [path.read_bytes()]
    for change in CHANGES:
        if isinstance(change, Edit):
            edit_file(path, change)
        else:
            x, y = blobs(list(change))
            store, data, new = Store(path), path.with_name("data.npz"), path.with_name("new")
            np.savez(data, x=x, y=y)
            with redirect_stdout(io.StringIO()):
                worker.learn(path, data, new)
            store.adopt(new, store.signature())
        found.append(path.read_bytes())
    return found


def live(path: Path, expected: Sequence[bytes], pauses: Sequence[float], tally: Tally) -> None:
    """A service that is killed after each pause, and one that goes on to the end."""
    accepted = 0
    for pause in [*pauses, PATIENCE]:
        here, there = FORK.Pipe(duplex=False)
        last = max(_numbers(path), default=0)  # one may have been accepted without a word
        process = FORK.Process(target=_serve, args=(path, max(last, accepted), there))
        process.start()
        there.close()
        process.join(pause)
        process.kill()
        process.join()
        said = _receive(here)
        accepted = max([last, accepted, *(each for each in said if isinstance(each, int))])
        if "over" in said:
            break
        expect(pause != PATIENCE, "the last service did not end")
        tally.kills += 1
        tally.before += any(not job.is_over for job in _history(path))
    jobs = _history(path)
    lost = [job for job in jobs if job.state == "lost"]
    tally.lost += [f"{job.kind} is lost: {job.error}" for job in lost]
    expect(accepted == len(CHANGES), f"{accepted} jobs were accepted")
    expect(bool(lost) or all(job.state == "done" for job in jobs), f"not all are done: {jobs}")
    expect(all(job.error for job in lost), "a job is lost without a reason")
    check_folder(path.parent, NAME, f"{NAME}.jobs.json", f"{NAME}.undo")
    expect(bool(lost) or path.read_bytes() == expected[-1], "the file is not the one that the same changes make")
    load_model(path)


def _history(path: Path) -> list[Job]:
    return list(History(path).jobs.values())


def _numbers(path: Path) -> list[int]:
    return [job.number for job in _history(path)]


def _receive(pipe: Connection) -> list[Any]:
    found = []
    try:
        while pipe.poll(0):
            found.append(pipe.recv())
    except EOFError:
        pass
    return found


def kill_services(kills: int, seed: int = 0, kills_per_life: int = 2) -> Tally:
    """Lives of services until so many were killed before their end."""
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as place:
        first = Path(place) / "first" / NAME
        first.parent.mkdir()
        save_model(first, model([0, 1], [2, 3], connections=(0.05,)))
        start_content = first.read_bytes()
        expected = make_expected(first)
        seconds = 1.0
        for number in range(20 * kills):
            if tally.kills >= kills:
                break
            path = Path(place) / str(number) / NAME
            path.parent.mkdir()
            path.write_bytes(start_content)
            pauses = [chance.uniform(0, seconds) for _ in range(kills_per_life if number else 0)]
            began = time.monotonic()
            try:
                live(path, expected, pauses, tally)
            except Exception as error:
                tally.problems.append(f"life {number}: {type(error).__name__}: {error}")
            if not number:
                seconds = time.monotonic() - began
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="kills of each command, and of services")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    began, problems = time.monotonic(), 0
    print(HEADING, flush=True)
    for name in (*COMMANDS, "service"):
        killed = kill_services if name == "service" else lambda *rest, name=name: kill_commands(name, *rest)
        tally = killed(options.kills, options.seed)
        print(tally.row(name if name == "service" else f"spacenet {name}"), flush=True)
        for line in (*tally.problems[:20], *tally.lost):
            print("   ", line)
        problems += len(tally.problems)
    print(f"{problems} problems in {time.monotonic() - began:.0f} s")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
