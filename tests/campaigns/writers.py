"""Processes that change a model file at the same time: `python -m tests.campaigns.writers --pairs 200`, from the root.

Two writers begin at almost the same instant, each with a class of its own; a third process loads the file all the
while. Whatever a writer reports to have learned must be in the file, what it does not must have a reason, old tasks
must be the same to the bit, and the file must load at any moment.
"""

import argparse
import io
import logging
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import torch

from spacenet import load  # here, so that no writer has to import what it needs
from spacenet.cli.main import main as run_command
from spacenet.errors import SpacenetError
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo_path
from spacenet.serve.history import SUFFIX
from tests.campaigns.invariants import Broken, Record, check_continued, check_folder, check_structure, expect
from tests.model.support import blobs, model
from tests.serve.support import NPZ, ended, npz, service

FORK = multiprocessing.get_context("fork")  # libraries are imported already, so all begin at once
NAME = "model.safetensors"
Outcome = tuple[bool, str]
"""Whether a writer says that it has changed the model, and what it says otherwise."""
RENAMED = {"class-0": "0", "class-1": "1"}
"""The class that a writer who edits gives its label."""
REASONS = ("changed by another process", "is being changed by")
PATIENCE = 120.0


def by_command(path: Path, label: str, pause: float) -> Outcome:
    """`spacenet learn`."""
    data = path.parent.parent / f"{label}.npz"
    x, y = blobs([label])
    np.savez(data, x=x, y=y)
    time.sleep(pause)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = run_command(["learn", str(path), str(data), "--quiet", "--json"])
    return code == 0, said.getvalue()


def by_service(path: Path, label: str, pause: float) -> Outcome:
    """A service of its own, which is asked to learn and then for the end of it."""
    x, y = blobs([label])
    with service(path.parent, learns=True) as it:
        time.sleep(pause)
        begun = it.post("/learn", content=npz(x=x, y=y), headers=NPZ)
        if begun.status_code != 202:
            return False, begun.text
        job = ended(it, begun.json()["number"])
    return job["state"] == "done", str(job["error"])


def by_edit(path: Path, label: str, pause: float) -> Outcome:
    """`spacenet edit`, which renames a class."""
    time.sleep(pause)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = run_command(["edit", str(path), "rename", RENAMED[label], label])
    return code == 0, said.getvalue()


def by_edit_of_service(path: Path, label: str, pause: float) -> Outcome:
    """A service of its own, which is asked to rename a class and then for the end of it."""
    with service(path.parent, learns=True) as it:
        time.sleep(pause)
        begun = it.post("/edit", json={"action": "rename", "label": int(RENAMED[label]), "new": label})
        job = ended(it, begun.json()["number"])
    return job["state"] == "done", str(job["error"])


def by_estimator(path: Path, label: str, pause: float) -> Outcome:
    """A classifier that was loaded, learns, and is saved."""
    classifier = load(path)
    classifier.partial_fit(*blobs([label]))
    time.sleep(pause)
    try:
        classifier.save(path)
    except SpacenetError as error:
        return False, str(error)
    return True, ""


Writer = Callable[[Path, str, float], Outcome]


@dataclass(frozen=True)
class Kind:
    """Two writers, the seconds that one may wait for the other, and how many in a hundred pairs are of this kind."""

    writers: tuple[Writer, Writer]
    apart: float
    share: int


KINDS = {
    "learn + learn": Kind((by_command, by_command), 0.1, 45),
    "learn + edit": Kind((by_command, by_edit), 0.1, 10),
    "learn + service": Kind((by_command, by_service), 4.0, 12),  # its worker imports torch before it learns
    "learn + edit of service": Kind((by_command, by_edit_of_service), 0.2, 10),
    "edit + service": Kind((by_edit, by_service), 4.0, 6),
    "service + service": Kind((by_service, by_service), 0.5, 8),
    "estimator + learn": Kind((by_estimator, by_command), 0.6, 9),
}


@dataclass
class Tally:
    """What became of the pairs of one kind."""

    pairs: int = 0
    both: int = 0
    refused: int = 0
    """Pairs of which one had to give way, and said so."""
    lost: int = 0
    """Tasks that were reported to be learned and are not in the file."""
    loads: int = 0
    problems: list[str] = field(default_factory=list)

    def row(self, kind: str) -> str:
        numbers = (self.pairs, self.both, self.refused, self.lost, self.loads, len(self.problems))
        return f"{kind:<25}" + "".join(f"{number:>15,}" for number in numbers)


HEADING = f"{'writers':<25}" + "".join(
    f"{each:>15}" for each in ("pairs", "both learned", "one refused", "lost silently", "loads", "problems")
)


def _write(writer: Writer, path: Path, label: str, pause: float, out: Connection) -> None:
    torch.set_num_threads(1)
    out.send(writer(path, label, pause))


def _read(path: Path, over: Event, out: Connection) -> None:
    loads, failed = 0, list[str]()
    while not over.is_set():
        try:
            load_model(path)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
        loads += 1
        time.sleep(0.005)
    out.send((loads, failed))


@contextmanager
def reader(path: Path, tally: Tally) -> Iterator[None]:
    """Load the file in another process for as long as the block lasts; every load must work."""
    over, (here, there) = FORK.Event(), FORK.Pipe()
    process = FORK.Process(target=_read, args=(path, over, there))
    process.start()
    try:
        yield
    finally:
        over.set()
        loads, failed = here.recv() if here.poll(PATIENCE) else (0, ["it did not end"])
        process.join()
        tally.loads += loads
        tally.problems += [f"a reader: {each}" for each in failed[:3]]


def write_at_once(kind: Kind, path: Path, chance: random.Random) -> list[Outcome]:
    """Let both writers begin, one of them a little later."""
    late, pause = chance.randrange(2), chance.uniform(0, kind.apart)
    started = []
    for number, writer in enumerate(kind.writers):
        here, there = FORK.Pipe()
        waits = pause if number == late else 0.0
        process = FORK.Process(target=_write, args=(writer, path, f"class-{number}", waits, there))
        process.start()
        there.close()
        started.append((process, here))
    try:
        return [_outcome(here) for _, here in started]
    finally:
        for process, _ in started:
            process.kill()  # a writer that has reported is done
            process.join()


def _outcome(writer: Connection) -> Outcome:
    expect(writer.poll(PATIENCE), "a writer does not end")
    try:
        success, said = writer.recv()
    except EOFError as error:
        raise Broken("a writer ended without a word") from error
    return success, said


def check_pair(path: Path, before: Record, outcomes: list[Outcome], tally: Tally) -> None:
    """Compare what the writers say with what the file holds."""
    learned = load_model(path)
    check_structure(learned)
    known = learned.classes
    for label in {*RENAMED} & {label for task in learned.tasks[: len(before.tasks)] for label in task}:
        learned.rename(label, int(RENAMED[label]))
    check_continued(before, Record.of(learned))
    beside = (undo_path(path), path.with_name(NAME + SUFFIX))
    check_folder(path.parent, NAME, *(each.name for each in beside if each.exists()))
    for number, (success, said) in enumerate(outcomes):
        held = f"class-{number}" in known
        tally.lost += success and not held
        expect(held or not success, f"writer {number} has learned, and its task is not in the file")
        expect(success or not held, f"writer {number} was refused, and its task is in the file: {said}")
        expect(success or any(reason in said for reason in REASONS), f"refused for another reason: {said}")
    successes = [success for success, _ in outcomes]
    expect(any(successes), f"neither has learned: {outcomes}")
    tally.both += all(successes)
    tally.refused += not all(successes)


def run_pair(name: str, seed: int, tally: Tally) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "models" / NAME
        path.parent.mkdir()
        first = model()
        save_model(path, first)
        tally.pairs += 1
        try:
            with reader(path, tally):
                outcomes = write_at_once(KINDS[name], path, random.Random(f"{name} {seed}"))
            check_pair(path, Record.of(first), outcomes, tally)
        except Exception as error:
            tally.problems.append(f"{name} {seed}: {type(error).__name__}: {error}")


def run(pairs: Mapping[str, int], seed: int = 0) -> dict[str, Tally]:
    tallies = {name: Tally() for name in pairs}
    for name, count in pairs.items():
        for number in range(seed, seed + count):
            run_pair(name, number, tallies[name])
    return tallies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first pair of each kind")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    began, problems = time.monotonic(), 0
    print(HEADING, flush=True)
    for name in options.kinds:
        tally = run({name: max(1, round(options.pairs * KINDS[name].share / 100))}, options.seed)[name]
        print(tally.row(name), flush=True)
        for problem in tally.problems[:20]:
            print("   ", problem)
        problems += len(tally.problems)
    print(f"{problems} problems in {time.monotonic() - began:.0f} s")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
