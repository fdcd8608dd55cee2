"""Compact against masked dense: the whole run at the preset's width, and single training steps at several widths."""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.masked import MaskedDense
from benchmarks.stepping import Stepper, after_tasks, alternate, dense_stepper, new_method
from benchmarks.workload import Workload, change, masked_dense, stream_of
from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream, Task
from spacenet.experiments.run import Run
from spacenet.methods.spacenet import SpaceNet
from spacenet.registry import METHODS
from spacenet.report.tables import Table

Figures = dict[str, Any]
COMPACT, WHOLE, LITERAL, DENSE = "compact", "masked, scattered", "masked, in place", "plain dense"
CHECKED_STEPS = 3


def timed_run(config: RunConfig) -> tuple[float, Figures]:
    """Seconds of a run from its configuration to the last file, reading the data included, and its metrics."""
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        metrics = Run(config, folder=Path(scratch)).execute().metrics
        return time.perf_counter() - began, metrics


def compare_runs(work: Workload, runs: int) -> Figures:
    """Whole runs with the same seed, the forms in turns."""
    masked = masked_dense(work.config)
    configs = {COMPACT: work.config, WHOLE: masked, LITERAL: change(masked, method=MaskedDense.name)}
    METHODS.register(MaskedDense.name, MaskedDense)  # a run finds its method by name
    try:
        return {"width": work.config.model.net.hidden[0], "runs": runs, "forms": _in_turns(configs, runs)}
    finally:
        METHODS.unregister(MaskedDense.name)


def _in_turns(configs: Mapping[str, RunConfig], runs: int) -> Figures:
    for config in configs.values():  # warm up
        timed_run(change(config, training=replace(config.model.training, epochs=1)))
    seconds: dict[str, list[float]] = {form: [] for form in configs}
    learning: dict[str, list[float]] = {form: [] for form in configs}
    last: dict[str, Figures] = {}
    for _ in range(runs):
        for form, config in configs.items():
            taken, last[form] = timed_run(config)
            seconds[form].append(taken)
            learning[form].append(last[form]["seconds"])
    return {
        form: {
            "seconds": median(seconds[form]),
            "learning_seconds": median(learning[form]),
            "all_seconds": seconds[form],
            "acc": last[form]["acc"],
            "matrix": last[form]["matrix"],
        }
        for form in configs
    }


def runs_table(figures: Figures) -> Table:
    """Each form's time and its ratio to the compact form's; learning leaves out reading the data and starting up."""
    forms = figures["forms"]
    base = forms[COMPACT]
    rows = [
        [
            form,
            f"{f['seconds']:.2f}",
            f"{f['seconds'] / base['seconds']:.2f}",
            f"{f['learning_seconds']:.2f}",
            f"{f['learning_seconds'] / base['learning_seconds']:.2f}",
            f"{f['acc']:.3f}",
            f"{_apart(f['matrix'], base['matrix']):.3f}",
        ]
        for form, f in forms.items()
    ]
    title = f"Whole run, hidden width {figures['width']}, same seed, median of {figures['runs']}"
    columns = ["form", "wall s", "ratio", "learning s", "ratio", "ACC %", "matrix differs by"]
    return Table(title, columns, rows)


def runs_verdict(figures: Figures) -> str:
    """The claim, against the faster of the masked forms."""
    forms = figures["forms"]
    faster = min((WHOLE, LITERAL), key=lambda form: forms[form]["seconds"])
    ratio = forms[faster]["seconds"] / forms[COMPACT]["seconds"]
    return f"The faster masked form ({faster}) takes {ratio:.2f} times as long as the compact one."


def compare_steps(work: Workload, seconds_per_cell: float) -> list[Figures]:
    """Steps of the first and of the last task, at each width, on the same allocation."""
    stream = stream_of(work.config)
    tasks = list(stream)
    return [
        _compare_task(work.at(width), stream, tasks[: index + 1], seconds_per_cell)
        for width in work.step_widths
        for index in (0, len(tasks) - 1)
    ]


def _compare_task(config: RunConfig, stream: Stream, tasks: list[Task], seconds_per_cell: float) -> Figures:
    *earlier, task = tasks
    learned = after_tasks(config, stream, earlier)
    steppers = {}
    for form, kind, its_config in (
        (COMPACT, SpaceNet, config),
        (WHOLE, SpaceNet, masked_dense(config)),
        (LITERAL, MaskedDense, masked_dense(config)),
    ):
        method = new_method(kind, its_config, stream)
        method.load_state(learned.state())
        steppers[form] = Stepper(method, task, its_config)
    steppers[DENSE] = dense_stepper(config, stream, tasks)
    return {
        "width": config.model.net.hidden[0],
        "task": task.index,
        "loss_apart": _check_same(steppers),
        "steps": {form: vars(timing) for form, timing in alternate(steppers, seconds_per_cell).items()},
    }


def _check_same(steppers: Mapping[str, Stepper]) -> float:
    """Largest difference of the forms' losses over the same steps, which must be rounding: else they differ."""
    losses = {form: [_loss(steppers[form]) for _ in range(CHECKED_STEPS)] for form in (COMPACT, WHOLE, LITERAL)}
    apart = max(abs(a - b) for form in losses for a, b in zip(losses[form], losses[COMPACT], strict=True))
    if apart > 1e-3:
        raise AssertionError(f"the forms do not train the same network: losses {losses}")
    return apart


def _loss(stepper: Stepper) -> float:
    stepper()
    return stepper.step.summarize()[0]


def steps_table(figures: list[Figures]) -> Table:
    """Milliseconds per step of each form; the ratios are taken against the faster masked form."""
    rows = []
    for f in figures:
        ms = {form: timing["ms"] for form, timing in f["steps"].items()}
        masked = min(ms[WHOLE], ms[LITERAL])
        rows.append(
            [
                f"{f['width']:,}, task {f['task'] + 1}",
                *(f"{ms[form]:.3f}" for form in (COMPACT, WHOLE, LITERAL, DENSE)),
                f"{masked / ms[COMPACT]:.2f}",
                f"{ms[DENSE] / ms[COMPACT]:.2f}",
                f"{masked / ms[DENSE]:.2f}",
            ]
        )
    columns = ["hidden width", COMPACT, WHOLE, LITERAL, DENSE, "masked / compact", "dense / compact", "masked / dense"]
    return Table("Training step in ms (batch, forward, loss, backward, step); masked: the faster one", columns, rows)


def _apart(a: list[list[float]], b: list[list[float]]) -> float:
    return max(abs(x - y) for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))
