"""Many cases in child processes: one that aborts, hangs or fills the memory is found and named, and the others go on.

Cases have numbers. A child works on them in order and reports each; when it ends early, the case that comes after the
last report is the one that ended it.
"""

import json
import os
import re
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import torch

MOST_SECONDS, MOST_MEGABYTES = 1.0, 500.0
PATIENCE, MOST_RESIDENT = 20.0, 3 * 1024**3
"""Seconds without a report, and bytes of a child, after which it is killed."""
ADDRESS_SPACE = 16 * 1024**3
TRIES = 3
"""A case that takes too long is done again. Seconds are the processor's, of all threads: others may use it too."""
Case = Callable[[], tuple[str, str, str]]
"""Does what is measured, and gives the kind of a case, its result and a detail."""
Work = Callable[[int], Case]
"""Prepares the case with a number, which is not measured."""
PROBLEM = "problems"


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    number: int
    kind: str
    result: str
    detail: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def in_children(
    numbers: Sequence[int], work: Work, batch: int = 250, most_seconds: float = MOST_SECONDS
) -> Iterator[Outcome]:
    """Do the work for all numbers, so many in one child."""
    left = list(numbers)
    while left:
        now = left[:batch]
        done = 0
        for outcome in _watch(now, work, most_seconds):
            done += 1
            yield outcome
        left = left[done:]


def _watch(numbers: Sequence[int], work: Work, most_seconds: float) -> Iterator[Outcome]:
    """The outcomes that one child reports, and what it died of."""
    out, into = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(out)
            code = _work_on(numbers, work, into, most_seconds)
        finally:
            os._exit(code)
    os.close(into)
    reported, reason = 0, ""
    with os.fdopen(out) as pipe:
        process, last = psutil.Process(child), time.monotonic()
        while True:
            if select.select([pipe], [], [], 0.1)[0]:
                line = pipe.readline()
                if not line:
                    break
                reported, last = reported + 1, time.monotonic()
                yield Outcome(**json.loads(line))
            elif process.status() == psutil.STATUS_ZOMBIE:
                continue  # the pipe is empty: its end comes next
            elif time.monotonic() - last > PATIENCE:
                reason = f"no end within {PATIENCE:.0f} s"
                os.kill(child, signal.SIGKILL)
            elif process.memory_info().rss > MOST_RESIDENT:
                reason = f"more than {MOST_RESIDENT / 1024**2:.0f} MB"
                os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if reported < len(numbers):
        yield Outcome(numbers[reported], "?", PROBLEM, reason or f"the process ended with exit code {code}")


def _work_on(numbers: Sequence[int], work: Work, into: int, most_seconds: float) -> int:
    """What the child does."""
    torch.set_num_threads(1)
    warnings.simplefilter("error")  # as in the tests: what is printed between the lines is not meant
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(into, "w") as pipe:
        for number in numbers:
            outcome = _measure(number, work(number), most_seconds)
            pipe.write(json.dumps(asdict(outcome)) + "\n")
            pipe.flush()
    return 0


def _measure(number: int, case: Case, most_seconds: float) -> Outcome:
    before, seconds = _reset_peak(), float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        kind, result, detail = case()
        seconds = min(seconds, time.process_time() - began)
        if seconds <= most_seconds:
            break
    grown = _peak() - before
    too_much = [f"{seconds:.1f} s"] * (seconds > most_seconds) + [f"{grown:.0f} MB"] * (grown > MOST_MEGABYTES)
    if too_much and result != PROBLEM:
        result, detail = PROBLEM, f"takes {' and '.join(too_much)} ({detail})"
    return Outcome(number, kind, result, detail, seconds, grown)


def _reset_peak() -> float:
    """Let `_peak` count from here, where the system can do that; returns the peak up to here, in MB."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024**2 if sys.platform == "darwin" else 1024)


def tabulate(outcomes: Sequence[Outcome], results: Sequence[str]) -> str:
    """One row for each kind: how many had which result, and the slowest and largest case with its number."""
    kinds = sorted({outcome.kind for outcome in outcomes})
    width = max(map(len, [*kinds, "all"])) + 2
    columns = [max(len(result) + 2, 10) for result in results]
    lines = [
        "".join([" " * width, *(f"{r:>{w}}" for r, w in zip(results, columns, strict=True)), "   slowest  largest"])
    ]
    for kind in [*kinds, "all"]:
        own = [outcome for outcome in outcomes if kind in (outcome.kind, "all")]
        counts = [sum(outcome.result == result for outcome in own) for result in results]
        slowest, largest = max(each.seconds for each in own), max(each.megabytes for each in own)
        cells = [f"{count:>{w},}" for count, w in zip(counts, columns, strict=True)]
        lines.append("".join([f"{kind:{width}}", *cells, f"{slowest:>8.2f} s{largest:>6.0f} MB"]))
    slowest_case = max(outcomes, key=lambda each: each.seconds)
    largest_case = max(outcomes, key=lambda each: each.megabytes)
    lines.append(f"slowest: --seed {slowest_case.number} ({slowest_case.kind}); ")
    lines[-1] += f"largest: --seed {largest_case.number} ({largest_case.kind})"
    return "\n".join(lines)
