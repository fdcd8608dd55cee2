"""Every command under faults of the file system: `python -m tests.campaigns.injection [--stride N]`, from the root.

Each command runs once to count its file operations, and then once for each of them and each kind of fault. After each
fault the old model must be there and answer as before, or the new one must be complete; the message must be one for
people; and a second try must work.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from spacenet.cli.main import main
from spacenet.model.file import load_model
from tests.campaigns.faults import KILLED, KINDS, Faults, Kind, in_child, inject
from tests.support import clouds, clouds_file

SMALL = ["--epochs", "1", "--quiet"]
NET = ["--hidden", "30", "30", "--selected", "10", "--reserved", "5", "--connections", "40", "40", "16"]


@dataclass(frozen=True)
class Scenario:
    """A command in a folder; `results` are the files that must be whole, `again` repeats it after a fault."""

    name: str
    arguments: Callable[[Path], list[str]]
    results: tuple[str, ...]
    again: Callable[[Path], list[str]] | None = None


def _run(folder: Path) -> list[str]:
    data = ["--npz", str(folder / "clouds.npz"), "--out", str(folder / "run")]
    return ["run", *data, "--tasks", "0,1/2,3", "--no-report", *SMALL, *NET]


def _run_again(folder: Path) -> list[str]:
    begun = (folder / "run" / "config.toml").exists()
    return ["run", "--resume", str(folder / "run"), "--no-report", "--quiet"] if begun else _run(folder)


def _compare(folder: Path) -> list[str]:
    data = ["--npz", str(folder / "clouds.npz"), "--out", str(folder / "comparison"), "--tasks", "0,1/2,3"]
    return ["compare", *data, "--methods", "naive,spacenet", "--workers", "1", "--no-report", *SMALL]


SCENARIOS = (
    Scenario("run", _run, ("run/model.safetensors", "run/metrics.json", "run/config.toml"), _run_again),
    Scenario("compare", _compare, ("comparison/comparison.json",)),
    Scenario(
        "learn",
        lambda folder: ["learn", str(folder / "model.safetensors"), "--npz", str(folder / "new.npz"), *SMALL],
        ("model.safetensors",),
    ),
    Scenario(
        "learn --out",
        lambda folder: [
            *("learn", str(folder / "model.safetensors"), "--npz", str(folder / "new.npz")),
            *("--out", str(folder / "two.safetensors"), *SMALL),
        ],
        ("two.safetensors", "model.safetensors"),
    ),
    Scenario(
        "predict",
        lambda folder: [
            *("predict", str(folder / "model.safetensors"), str(folder / "clouds.npz")),
            *("--out", str(folder / "found.csv"), "--format", "csv"),
        ],
        ("found.csv", "model.safetensors"),
    ),
    Scenario(
        "report",
        lambda folder: ["report", str(folder / "made"), "--out", str(folder / "page.html")],
        ("page.html", "model.safetensors"),
    ),
)


def prepare(folder: Path) -> None:
    """A finished run, its model, and data of more classes."""
    clouds_file(folder)
    arguments = ["run", "--npz", str(folder / "clouds.npz"), "--tasks", "0,1/2,3", "--out", str(folder / "made")]
    if call([*arguments, "--no-report", *SMALL, *NET], folder.parent / "out") != 0:
        raise RuntimeError("the first run failed")
    shutil.copy(folder / "made" / "model.safetensors", folder / "model.safetensors")
    data = clouds()
    rows = data.y_train >= 4
    np.savez(folder / "new.npz", x=data.x_train[rows], y=data.y_train[rows])


def call(arguments: list[str], output: Path, faults: Faults | None = None) -> int:
    """Run a command in a process of its own, with faults; what it prints goes to a file."""

    def work() -> int:
        torch.set_num_threads(1)
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        code = 70
        try:
            if faults is None:
                code = main(arguments)
            else:
                with inject(faults):
                    code = main(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            if faults is not None:
                output.with_suffix(".operations").write_text("\n".join(faults.operations))
            sys.stdout.flush()
            sys.stderr.flush()
        return code

    return in_child(work)


@dataclass
class Result:
    """What a scenario has shown."""

    scenario: str
    faults: int = 0
    problems: tuple[str, ...] = ()


def attack(scenario: Scenario, base: Path, scratch: Path, stride: int = 1, kinds: tuple[Kind, ...] = KINDS) -> Result:
    """Let every `stride`-th operation of a command fail in every way."""
    place, output = scratch / "place", scratch / "output"

    def fresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base, place)
        return place

    faults = Faults(fresh())
    if call(scenario.arguments(place), output, faults) != 0:
        return Result(scenario.name, 0, (f"fails without any fault: {output.read_text()[-500:]}",))
    operations = output.with_suffix(".operations").read_text().splitlines()
    result, found = Result(scenario.name), list[str]()
    for number in range(1, len(operations) + 1, stride):
        for kind in kinds:
            result.faults += 1
            code = call(scenario.arguments(fresh()), output, Faults(place, number, kind, persistent=kind != "killed"))
            where = f"{scenario.name}: {kind} at {number} ({operations[number - 1]})"
            found += [f"{where}: {problem}" for problem in check(scenario, base, place, output, code)]
    result.problems = tuple(found)
    return result


def check(scenario: Scenario, base: Path, place: Path, output: Path, code: int) -> Iterator[str]:
    """What is wrong after a fault."""
    text = output.read_text(errors="replace")
    if "Traceback" in text or code == 70:
        yield f"no message for people: {text[-300:]}"
    if code not in (0, 1, 2, KILLED):
        yield f"exit code {code}"
    done = code == 0
    for name in scenario.results:
        before, after = base / name, place / name
        if before.exists() and not after.exists():
            yield f"{name} is gone"
        elif done and not after.exists():
            yield f"exit code 0 without {name}"
        elif name.endswith(".safetensors") and after.exists():
            try:
                learned = len(load_model(after).tasks)
                unchanged = before.exists() and after.read_bytes() == before.read_bytes()
                done = done or (before.exists() and not unchanged)  # the fault came when it was in its place already
                if not unchanged and before.exists() and learned != len(load_model(before).tasks) + 1:
                    yield f"{name} is neither the old model nor the new one"
            except Exception as error:
                yield f"{name}: {error}"
    if not done and call((scenario.again or scenario.arguments)(place), output) != 0:
        yield f"a second try fails: {output.read_text()[-300:]}"
    left = [path.name for path in place.rglob(".*.tmp")]
    if left and code != KILLED:
        yield f"left behind: {left}"


def run(stride: int = 1, kinds: tuple[Kind, ...] = KINDS, only: tuple[str, ...] = ()) -> list[Result]:
    """All scenarios."""
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        base.mkdir()
        prepare(base)
        chosen = [scenario for scenario in SCENARIOS if not only or scenario.name in only]
        return [attack(scenario, base, Path(scratch), stride, kinds) for scenario in chosen]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1, help="let only every n-th operation fail")
    parser.add_argument("--only", nargs="*", default=(), help="only these commands")
    options = parser.parse_args()
    results = run(options.stride, only=tuple(options.only))
    for each in results:
        print(f"{each.scenario:14} {each.faults:6} faults  {len(each.problems):4} problems")
        for problem in each.problems[:20]:
            print("   ", problem)
    print(sum(each.faults for each in results), "faults in all")
    sys.exit(any(each.problems for each in results))
