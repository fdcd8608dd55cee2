"""Kill runs of every method at random instants, resume them, and compare the result with an uninterrupted run.

    python -m tests.campaigns.kills --kills 20

A run is a process of its own that SIGKILL ends. It is then resumed to its end, and metrics and tensors must be the same
to the bit. Optimizers take turns: SGD with momentum, and Adam.
"""

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spacenet.config.run import RunConfig
from spacenet.experiments.run import METRICS, STATE, Run
from spacenet.registry import METHODS
from tests.experiments.support import config, outcome

FORK = multiprocessing.get_context("fork")  # libraries are imported already, so a run starts at once
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "sgd", "momentum": 0.5, "learning_rate": 0.05},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
}


@dataclass
class Tally:
    """What became of one method's kills."""

    kills: int = 0
    in_a_task: int = 0
    equal: int = 0


def execute(settings: RunConfig, folder: Path) -> None:
    torch.set_num_threads(1)
    Run(settings, folder=folder).execute()


def kill_and_resume(settings: RunConfig, folder: Path, after: float) -> tuple[bool, bool]:
    """Kill a run after so many seconds and resume it: whether it was killed before its end, and in the middle."""
    process = FORK.Process(target=execute, args=(settings, folder))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    finished, middle = (folder / METRICS).is_file(), (folder / STATE).is_file()
    if not finished:
        again = FORK.Process(target=execute, args=(settings, folder))
        again.start()
        again.join()
        if again.exitcode != 0:
            raise AssertionError(f"{settings.model.method}: the resumed run ended with exit code {again.exitcode}")
    return not finished, middle and not finished


def kill_method(method: str, kills: int, seed: int = 0, optimizers: tuple[str, ...] = tuple(OPTIMIZERS)) -> Tally:
    """Kill runs of a method until so many were killed before their end."""
    chance, tally = random.Random(f"{method} {seed}"), Tally()
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        whole: dict[str, tuple[Any, float, RunConfig]] = {}
        for name in optimizers:
            settings = config(base, method, training={"epochs": 4, **OPTIMIZERS[name]})
            began = time.perf_counter()
            process = FORK.Process(target=execute, args=(settings, base / name))
            process.start()
            process.join()
            assert process.exitcode == 0, f"{method}: exit code {process.exitcode}"
            whole[name] = outcome(base / name), time.perf_counter() - began, settings
        for number in range(20 * kills):
            if tally.kills == kills:
                break
            expected, seconds, settings = whole[optimizers[number % len(optimizers)]]
            folder = base / f"killed-{number}"
            killed, middle = kill_and_resume(settings, folder, chance.uniform(0.05, 1.0) * seconds)
            tally.kills, tally.in_a_task = tally.kills + killed, tally.in_a_task + middle
            tally.equal += killed and outcome(folder) == expected
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="kills of each method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    options = parser.parse_args()
    print(f"{'method':<20}{'kills':>7}{'with a checkpoint':>19}{'equal to the bit':>18}", flush=True)
    lost = 0
    for method in options.methods:
        tally = kill_method(method, options.kills, options.seed)
        print(f"{method:<20}{tally.kills:>7}{tally.in_a_task:>19}{tally.equal:>18}", flush=True)
        lost += options.kills - tally.equal
    print(f"{lost} kills without an equal result")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
