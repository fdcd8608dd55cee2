"""What the width of the hidden layers costs the compact form: time per step, peak memory, size of the ledger."""

import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.stepping import Stepper, after_tasks, alternate
from benchmarks.workload import Workload, stream_of
from spacenet.config.run import RunConfig
from spacenet.report.tables import Table

Figures = dict[str, Any]
PROCESSES = 3
MIB = 2**20


@dataclass(frozen=True)
class Memory:
    """Bytes: by how much the process's peak grew (None where there is no /proc), and what the ledger holds."""

    peak_growth: int | None
    ledger: int


def measure_widths(work: Workload, seconds_per_cell: float) -> list[Figures]:
    """The last task's steps at each width, in turns; memory of all tasks, each time in a process of its own."""
    stream = stream_of(work.config)
    *earlier, last = list(stream)
    steppers = {}
    for width in work.widths:
        method = after_tasks(work.at(width), stream, earlier)
        steppers[str(width)] = Stepper(method, last, work.at(width))
    timings = alternate(steppers, seconds_per_cell)
    return [
        {"width": width, "step": vars(timings[str(width)]), "memory": asdict(_in_new_processes(work.at(width)))}
        for width in work.widths
    ]


def _in_new_processes(config: RunConfig) -> Memory:
    """Median of several: where the allocator puts things is a little different each time."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        found = [pool.submit(memory_of, config).result() for _ in range(PROCESSES)]
    growths = [memory.peak_growth for memory in found if memory.peak_growth is not None]
    return Memory(int(median(growths)) if growths else None, found[0].ledger)


def memory_of(config: RunConfig) -> Memory:
    """Learn a little of each task, then classify; run in a fresh process, whose peak nothing else has raised."""
    torch.set_num_threads(config.model.training.threads)
    stream = stream_of(config)
    tasks = list(stream)
    samples = [(len(task.train), task.test) for task in tasks]  # tasks keep what they made, so it is not counted below
    _wake_libraries(config.model.training.batch_size)
    before = _forget_peak()
    method = after_tasks(config, stream, tasks)
    for _, test in samples:
        method.predict_all(test.x)
    after = _peak()
    ledger = sum(tensor.nbytes for tensor in method.ledger.tensors().values())
    return Memory(None if before is None or after is None else after - before, ledger)


def _wake_libraries(batch: int) -> None:
    """Let torch allocate what it does once, whatever the width."""
    layer = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    torch.nn.functional.cross_entropy(layer(torch.rand(batch, 16)), torch.zeros(batch, dtype=torch.long)).backward()
    optimizer.step()


def _forget_peak() -> int | None:
    """Start a new peak (reading the data may have raised it for a moment); returns the resident bytes now."""
    with suppress(OSError):  # where it is not allowed, growth counts from the peak so far and may come out too small
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int | None:
    """VmHWM and not getrusage's ru_maxrss: a child inherits the latter from the process that started it."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return 1024 * int(found[1]) if found else None


def widths_table(figures: list[Figures]) -> Table:
    """Each width's figures and their ratios to the first one's."""
    rows = []
    for f in figures:
        row = [f"{f['width']:,}"]
        for value, base, scale in zip(_columns(f), _columns(figures[0]), (1, MIB, MIB), strict=True):
            row += [f"{value / scale:.3f}", f"{value / base:.2f}"] if value and base else ["–", "–"]
        rows.append(row)
    columns = ["hidden width", "ms per step", "ratio", "peak growth MiB", "ratio", "ledger MiB", "ratio"]
    return Table("Compact workspace, both hidden layers this wide, last task", columns, rows)


def _columns(f: Figures) -> tuple[float, float | None, float]:
    return f["step"]["ms"], f["memory"]["peak_growth"], f["memory"]["ledger"]
