"""Every command under faults of the file system: `python -m tests.campaigns.injection`, from the root.

Each command runs once to count its file operations, and then once for each of them and each kind of fault: alone, and
with all later operations failing too. After each fault every file must be the old one or the one that a run without
faults makes, to the bit; models must answer accordingly; the message must be one for people; nothing half-written may
lie about; and a second try must give the result of a run without faults.
"""

import argparse
import contextlib
import fnmatch
import functools
import gc
import io
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from spacenet.errors import ModelFileError
from spacenet.model.file import from_bytes, make_probe
from tests.campaigns.faults import ERRORS, KILLED, Faults, Kind, can_fail, in_child, inject
from tests.campaigns.scenarios import SCENARIOS, Scenario, Work, fast_forms, import_once, parse_once, prepare
from tests.experiments.support import timeless

FAULTY = 70
"""The exit code for what must not happen: an exception that is not handled, or a service that answers wrongly."""
NOT_FOR_PEOPLE = ("Traceback", "unexpected", "Error:")
NO_REPORT, NOT_FLUSHED = "No report was written", "would perhaps not outlast a power cut"
ENDS = {".html": "</html>"}
LONG_AGO = 3600.0
"""Seconds by which leftovers are made older: what has just been made may be somebody's."""
Fault = tuple[int, Kind, bool]
"""The number of the operation, how it fails, and whether all later ones fail too."""


@dataclass(frozen=True)
class State:
    """What lies in a folder: each file's permissions and content, and what each model answers."""

    files: dict[str, tuple[int, Any]]
    answers: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Called:
    """How work in a process of its own ended."""

    code: int
    out: str
    err: str
    operations: list[str]
    refused: list[str]
    bypassed: list[str]


@dataclass
class Result:
    """What a scenario has shown."""

    scenario: str
    operations: int = 0
    faults: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.scenario:22}{self.operations:11}{self.faults:8}{len(self.problems):10}{self.seconds:9.1f}"
            f"{1000 * self.seconds / max(1, self.faults):10.0f}"
        )


HEADING = f"{'command':22}{'operations':>11}{'faults':>8}{'problems':>10}{'seconds':>9}{'ms/fault':>10}"


def call(work: Work, place: Path, faults: Faults | None = None) -> Called:
    """Do the work in a process of its own, with faults; what it prints goes to files beside `place`."""
    files = {name: place.with_name(name) for name in ("out", "err", "operations")}
    noted = faults or Faults(place / "nowhere")

    def child() -> int:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(files[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        code = FAULTY
        try:
            with inject(noted):
                code = work(place)
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:
            traceback.print_exc()
        files["operations"].write_text(json.dumps([noted.operations, noted.refused, noted.bypassed]))
        sys.stdout.flush()
        sys.stderr.flush()
        return code

    files["operations"].write_text("[[], [], []]")
    code = in_child(child)
    out, err = (files[name].read_text(errors="replace") for name in ("out", "err"))
    return Called(code, out, err, *json.loads(files["operations"].read_text()))


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Print nothing."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def look(place: Path, scenario: Scenario) -> State:
    """The state of a folder."""
    files: dict[str, tuple[int, Any]] = {}
    answers: dict[str, torch.Tensor] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if _matches(name, scenario.told):
            json.loads(path.read_bytes())
            continue
        if path.is_symlink() or path.is_file():
            files[name] = path.lstat().st_mode, content_of(path, _matches(name, scenario.timed))
        elif not any(path.iterdir()) and path.name.startswith("."):
            files[name] = path.lstat().st_mode, "folder"
        if path.suffix == ".safetensors" and path.is_file():
            found = answers_of(path.read_bytes())
            if found is not None:
                answers[name] = found
    return State(files, answers)


def content_of(path: Path, timed: bool) -> Any:
    """What a file holds; if it holds times, what does not depend on them."""
    if path.is_symlink():
        return path.readlink()
    if not timed:
        return path.read_bytes()
    try:
        text = path.read_text().rstrip()
        return without_times(json.loads(text)) if path.suffix == ".json" else text.endswith(ENDS.get(path.suffix, ""))
    except ValueError:
        return "damaged"


def without_times(value: Any) -> Any:
    """JSON without the figures that differ from run to run."""
    plain = timeless(value)
    for row in plain.get("rows", ()):
        del row["relative_time"]
    return plain


@functools.lru_cache(maxsize=64)
def answers_of(content: bytes) -> torch.Tensor | None:
    """What the model in a file answers; None for what is no model, as the state of a method."""
    try:
        model = from_bytes(content)
        return model.scores(make_probe(model))
    except ModelFileError:
        return None


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _same(first: torch.Tensor | None, second: torch.Tensor | None) -> bool:
    return first is not None and second is not None and torch.equal(first, second)


def is_leftover(name: str) -> bool:
    """Whether a file is one of those that a command makes for itself only."""
    return any(part.startswith(".") or part.endswith((".lock", ".rename", ".tmp")) for part in Path(name).parts)


class Campaign:
    """A prepared folder, and what is done to copies of it."""

    def __init__(self, scratch: Path) -> None:
        torch.set_num_threads(1)
        import_once()
        self.base, self.place = scratch / "base", scratch / "place"
        self.place.mkdir()
        prepare(self.place)  # where the copies will be: configurations name the place of the data
        shutil.copytree(self.place, self.base)
        with fast_forms(), silence():
            parse_once(self.place)

    def fresh(self) -> Path:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.base, self.place)
        return self.place

    def attack(self, scenario: Scenario, most: int | None = None) -> Result:
        """Let operations fail in every way; `most` limits it to so many faults, evenly spread.

        In a process of its own: what is done to save time stays in there.
        """
        found = self.place.with_name("result")

        def child() -> int:
            with fast_forms():
                found.write_text(json.dumps(asdict(self._attack(scenario, most))))
            return 0

        if in_child(child) != 0:
            raise RuntimeError(f"{scenario.name}: the campaign itself failed")
        return Result(**json.loads(found.read_text()))

    def _attack(self, scenario: Scenario, most: int | None) -> Result:
        began, result = time.perf_counter(), Result(scenario.name)
        if scenario.warm is not None:
            with silence():
                scenario.warm(self.fresh())
        gc.collect()
        gc.freeze()  # or each process would copy what is there already, to look for garbage in it
        old = look(self.fresh(), scenario)
        plain = call(scenario.work, self.place, Faults(self.place))
        new = look(self.place, scenario)
        result.operations = len(plain.operations)
        result.problems += [_line(f"{scenario.name}: {problem}") for problem in check_plain(plain, old, new)]
        faults = list_faults(plain.operations, scenario)
        if most is not None:
            faults = [faults[number * len(faults) // most] for number in range(min(most, len(faults)))]
        for fault in faults if not result.problems else ():
            result.faults += 1
            number, kind, persistent = fault
            what = f"{kind} {'from' if persistent else 'at'} {number} ({plain.operations[number - 1]})"
            called = call(scenario.work, self.fresh(), Faults(self.place, number, kind, persistent))
            problems = self.check(scenario, called, fault, old, new)
            result.problems += [_line(f"{scenario.name}: {what}: {problem}") for problem in problems]
        result.seconds = time.perf_counter() - began
        return result

    def check(self, scenario: Scenario, called: Called, fault: Fault, old: State, new: State) -> Iterator[str]:
        """What is wrong after a fault, and after a second try."""
        yield from check_message(called, fault[1])
        found = look(self.place, scenario)
        yield from check_leftovers(called, fault, found, old)
        yield from check_files(scenario, called, found, old, new)
        added = scenario.once and any(is_new(name, found, old, new) for name in old.answers)
        if called.code not in (0, KILLED) and added:
            yield f"exit code {called.code}, and the task was added: {called.err}"
        if called.code == 0:
            return
        for path in self.place.rglob(".*"):
            os.utime(path, (time.time() - LONG_AGO,) * 2, follow_symlinks=False)
        again = call(scenario.again or scenario.work, self.place)
        if again.code != 0:
            yield f"a second try fails: {again.err[-300:]}"
            return
        found = look(self.place, scenario)
        if left := [name for name in found.files if is_leftover(name) and name not in new.files]:
            yield f"left behind by a second try: {left}"
        elif added:  # killed when it was done: the task is there twice now
            yield from (f"after a second try {name} is no model" for name in old.answers.keys() - found.answers.keys())
        else:
            yield from (f"after a second try {name} is not as without faults" for name in differing(found, new))


def is_new(name: str, found: State, old: State, new: State) -> bool:
    """Whether a file has been replaced by the one that a run without faults makes."""
    return found.files.get(name) == new.files.get(name) != old.files.get(name)


def differing(found: State, new: State) -> list[str]:
    names = [name for name in {**found.files, **new.files} if found.files.get(name) != new.files.get(name)]
    return names + [name for name, scores in new.answers.items() if not _same(scores, found.answers.get(name))]


def check_plain(plain: Called, old: State, new: State) -> Iterator[str]:
    """A run without faults must work, and all that it does to files must have been counted."""
    if plain.code != 0:
        yield f"fails without any fault: {plain.err[-2000:]}"
    if plain.bypassed:
        yield f"not under control: {plain.bypassed}"
    noted = " ".join(plain.operations)
    for name in {**old.files, **new.files}:
        if old.files.get(name) != new.files.get(name) and Path(name).name not in noted:
            yield f"{name} is written in a way that is not under control"


def check_message(called: Called, kind: Kind) -> Iterator[str]:
    """The exit code, and what was printed."""
    text = called.out + called.err
    if called.code not in ((0, KILLED) if kind == "killed" else (0, 1, 2)):
        yield f"exit code {called.code}: {text[-2000:]}"
    elif any(words in text for words in NOT_FOR_PEOPLE):
        yield f"no message for people: {text[-2000:]}"
    elif called.code in (1, 2):
        lines = [line for line in called.err.splitlines() if NOT_FLUSHED not in line]
        if not lines or not all(line.startswith("spacenet: ") for line in lines):
            yield f"other lines than messages, or none: {text[-2000:]}"


def check_leftovers(called: Called, fault: Fault, found: State, old: State) -> Iterator[str]:
    """Nothing half-written lies about, unless the process was killed or removing it was refused."""
    _, kind, persistent = fault
    if called.code == KILLED or (persistent and kind != "no space"):
        return
    for name in found.files.keys() - old.files.keys():
        if is_leftover(name) and not any(part in called.refused for part in Path(name).parts):
            yield f"left behind: {name}"


def check_files(scenario: Scenario, called: Called, found: State, old: State, new: State) -> Iterator[str]:
    """Every file is the old one or the new one; with the exit code 0 all are new."""
    for name in old.files.keys() & new.files.keys() - found.files.keys():
        yield f"{name} is gone"
    for name, content in found.files.items():
        known = content in (old.files.get(name), new.files.get(name))
        if not (known or is_leftover(name) or _matches(name, scenario.passing)):
            yield f"{name} is neither the old one nor the new one"
    for name in old.answers.keys() | new.answers.keys():
        if name in found.files and not any(_same(found.answers.get(name), s.answers.get(name)) for s in (old, new)):
            yield f"{name} answers neither like the old model nor like the new one"
    if called.code == 0:
        for name in differing(found, new):
            refused = Path(name).name in called.refused
            if not (refused or is_leftover(name) or (name.endswith("report.html") and NO_REPORT in called.out)):
                yield f"exit code 0, and {name} is not as without faults: {called.out[-300:]}{called.err[-300:]}"


def list_faults(operations: Sequence[str], scenario: Scenario) -> list[Fault]:
    """All faults that are possible: each operation, each kind, alone and with all that follows.

    Where kinds take turns, each operation ends the process, fails alone, and fails with all that follows.
    """
    first = 1 if scenario.last is None else max(1, len(operations) - scenario.last + 1)
    faults: list[Fault] = []
    for position, number in enumerate(range(first, len(operations) + 1)):
        kinds = [kind for kind in ERRORS if can_fail(operations[number - 1], kind)]
        alone = kinds if not scenario.in_turn else [kinds[position % len(kinds)]]
        lasting = kinds if not scenario.in_turn else [kinds[(position + 1) % len(kinds)]]
        faults += [(number, kind, False) for kind in alone] + [(number, kind, True) for kind in lasting]
        faults.append((number, "killed", False))
    return faults


def _line(text: str) -> str:
    return " ".join(text.split())[:700]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=(), help="only these commands")
    parser.add_argument("--most", type=int, help="at most so many faults of each command")
    options = parser.parse_args()
    results = []
    print(HEADING, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch))
        for scenario in SCENARIOS:
            if not options.only or scenario.name in options.only:
                results.append(campaign.attack(scenario, options.most))
                print(results[-1], flush=True)
                for problem in results[-1].problems:
                    print("   ", problem, flush=True)
    problems, seconds = sum(len(each.problems) for each in results), sum(each.seconds for each in results)
    print(f"{sum(each.faults for each in results):,} faults, {problems} problems, {seconds:.0f} s", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
