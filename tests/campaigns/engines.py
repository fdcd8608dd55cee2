"""Kill the client, a worker, and the scheduler or the head in the middle of a comparison, on every engine.

The same command then has to finish what is left, equal to the bit to a comparison on this machine:

    python -m tests.campaigns.engines --count 3
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from spacenet.experiments.run import METRICS, STATE
from tests.experiments.support import outcome
from tests.support import clouds_file

METHODS, SEEDS = ("naive", "spacenet"), 3
RUNS = len(METHODS) * SEEDS
SETTINGS = """
[net]
hidden = [30, 30]
[training]
epochs = {epochs}
batch_size = 10
learning_rate = 0.1
[methods.spacenet.method]
selected = [10]
reserved = [5]
connections = [40, 40, 16]
"""
PATIENCE = 120.0
SECONDS_TO_END = 5.0
"""In which the workers of a killed client must have ended."""
ENVIRONMENT = {
    **os.environ,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef",
    "OMP_NUM_THREADS": "1",
}
RAY_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
options = {"object_store_memory": 80_000_000, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "temp_dir": sys.argv[1], **options})
node = cluster.add_node(num_cpus=2, object_store_memory=80_000_000)
pids = lambda node, *names: [str(p.process.pid) for name in names for p in node.all_processes.get(name, [])]
head = pids(cluster.head_node, "gcs_server", "raylet")
print(cluster.address, ",".join(head), ",".join(pids(node, "raylet")), flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@dataclass
class Cluster:
    """How a command reaches an engine, and which processes can be killed."""

    options: list[str]
    victims: dict[str, Callable[[], list[int]]] = field(default_factory=dict)
    """Besides the client, which is not known here."""


def descendants(pid: int, *words: str) -> list[psutil.Process]:
    """Processes below this one whose command line has one of the words; all of them if there are none."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                line = " ".join(process.cmdline())
                if not words or any(word in line for word in words):
                    found.append(process)
    return found


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    running = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


def end_processes(*started: "subprocess.Popen[str]") -> None:
    """End processes of ours, and those that they started."""
    below = [child for process in started for child in descendants(process.pid)]
    for process in started:
        if process.stdin is not None:
            process.stdin.close()
        process.terminate()
    psutil.wait_procs(below, timeout=5)
    for child in alive(below):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    for process in started:
        process.kill()
        process.wait()


def start(*arguments: str, **options: int) -> "subprocess.Popen[str]":
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, **{"stderr": subprocess.DEVNULL, **options})  # type: ignore[call-overload,no-any-return]


@contextmanager
def local(folder: Path) -> Iterator[Cluster]:
    yield Cluster(["--workers", "2"])


@contextmanager
def dask(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler and two workers, each with the process that starts it again when it dies (Dask's nanny)."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    scheduler = start(
        "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file),
    )  # fmt: skip
    nannies = [
        start(
            "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--host",
            "127.0.0.1", "--no-dashboard", "--local-directory", str(folder),
        )
        for _ in range(workers)
    ]  # fmt: skip
    try:
        wait_until(file.is_file)
        wait_until(lambda: "tcp://" in file.read_text())
        address = next(part for part in file.read_text().split('"') if part.startswith("tcp://"))
        works = [nanny.pid for nanny in nannies]
        victims = {
            "worker": lambda: [p.pid for nanny in works[:1] for p in descendants(nanny, "spawn_main")],
            "all workers": lambda: [*works, *(p.pid for nanny in works for p in descendants(nanny, "spawn_main"))],
            "scheduler": lambda: [scheduler.pid],
        }
        yield Cluster(["--engine", "dask", "--address", address], victims)
    finally:
        end_processes(scheduler, *nannies)


@contextmanager
def ray(folder: Path) -> Iterator[Cluster]:
    """A head without cores, and a node with two."""
    # A folder of its own: a head that is killed leaves its address behind, and later ones would be looked for there.
    cluster = start("-c", RAY_CLUSTER, str(folder / "ray"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert cluster.stdout is not None
        address, head, node = cluster.stdout.readline().split()
        victims = {
            "worker": lambda: [p.pid for p in descendants(cluster.pid, "ray::spacenet-run")][:1],
            "node": lambda: [int(pid) for pid in node.split(",")],
            "head": lambda: [int(pid) for pid in head.split(",")],
        }
        yield Cluster(["--engine", "ray", "--address", address], victims)
    finally:
        end_processes(cluster)


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Cluster]]] = {"local": local, "dask": dask, "ray": ray}
VICTIMS = {
    "local": ("client", "client SIGTERM", "worker"),
    "dask": ("client", "client SIGTERM", "worker", "all workers", "scheduler"),
    "ray": ("client", "client SIGTERM", "worker", "node", "head"),
}

FATAL = ("all workers", "node", "scheduler", "head")
"""Victims without which a cluster is of no use; the same command then goes to another one."""


def wait_until(happened: Callable[[], object], seconds: float = PATIENCE) -> float:
    """Returns after how many seconds it has happened."""
    began = time.monotonic()
    while not happened():
        if time.monotonic() - began > seconds:
            raise TimeoutError("it has not happened")
        time.sleep(0.02)
    return time.monotonic() - began


@dataclass(frozen=True)
class Trial:
    """What came of one kill."""

    code: int | None
    """The exit code of the command, or none if it had to be ended because it waits for workers."""
    ended_after: float
    """Seconds from the kill to the end of the command and, where it was killed itself, of its workers."""
    finished: int
    """Runs that were finished by then."""
    messages: str
    equal: bool
    """Whether the same command finished the rest to the same bits."""
    said_again: str
    """Its messages."""

    def describe(self) -> str:
        last, again = self.messages.splitlines()[-1:] or [""], "equal" if self.equal else "DIFFERS"
        done = f"{self.finished} of {RUNS}"
        return f"{self.code!s:>5}{self.ended_after:9.1f}{done:>10}  {again:8}{last[0]}"


def compare_command(npz: Path, out: Path, options: list[str], epochs: int) -> list[str]:
    settings = npz.with_name("settings.toml")
    settings.write_text(SETTINGS.format(epochs=epochs))
    what = ["--methods", ",".join(METHODS), "--seeds", str(SEEDS), "--config", str(settings)]
    return ["-m", "spacenet", "compare", *what, str(npz), "--out", str(out), "--no-report", *options]


def finished_runs(out: Path) -> int:
    return len(list(out.glob(f"*/*/{METRICS}")))


def results(out: Path) -> list[object]:
    return [outcome(out / method / f"seed-{seed}") for method in METHODS for seed in range(SEEDS)]


def kill_in_a_comparison(engine: str, victim: str, folder: Path, epochs: int, delay: float) -> Trial:
    """Start a comparison, kill the victim when a run is finished and another one under way, and give it again."""
    npz, out, whole = clouds_file(folder), folder / "out", folder.parent / f"whole-{epochs}"
    with ExitStack() as stack:
        cluster = stack.enter_context(ENGINES[engine](folder))
        command = compare_command(npz, out, cluster.options, epochs)
        client = start(*command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: client.poll() is not None or (finished_runs(out) and list(out.glob(f"*/*/{STATE}"))))
            time.sleep(delay)
            code, messages, ended = kill(victim, cluster, client)
        finally:
            end_processes(client)
        finished = finished_runs(out)
        if victim in FATAL:
            stack.close()
            cluster = stack.enter_context(ENGINES[engine](folder))
        again = run_to_the_end(compare_command(npz, out, cluster.options, epochs))
    if not whole.is_dir():
        run_to_the_end(compare_command(npz, whole, ["--workers", "1"], epochs))
    equal = again.returncode == 0 and results(out) == results(whole)
    return Trial(code, ended, finished, messages, equal, again.stderr)


def kill(victim: str, cluster: Cluster, client: "subprocess.Popen[str]") -> tuple[int | None, str, float]:
    """Kill the victim; returns how the client ended, what it said, and after how many seconds it was over."""
    by_client = victim.startswith("client")
    below = [p for p in descendants(client.pid) if "resource_tracker" not in " ".join(p.cmdline())]
    local = {"worker": lambda: [process.pid for process in below][:1]}
    pids = [client.pid] if by_client else (cluster.victims or local)[victim]()
    assert pids, "nothing to kill is there"
    began = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGTERM if victim.endswith("SIGTERM") else signal.SIGKILL)
    code, messages = wait_for_client(client)
    if by_client:
        wait_until(lambda: not alive(below), SECONDS_TO_END)
    return code, messages, time.monotonic() - began


def run_to_the_end(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *command], env=ENVIRONMENT, capture_output=True, text=True, check=False)


def wait_for_client(client: "subprocess.Popen[str]") -> tuple[int | None, str]:
    """Wait for the end of a command; one that says that it waits for workers is ended."""
    assert client.stderr is not None
    lines = []
    for line in client.stderr:
        lines.append(line.rstrip())
        if "waiting, Ctrl-C ends" in line:
            client.send_signal(signal.SIGINT)
            lines += [rest.rstrip() for rest in client.stderr]
            client.wait()
            return None, "\n".join(lines)
    return client.wait(), "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1, help="rounds of all kills")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--victims", nargs="+", help="only these")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, children would ignore it
    chance, failed = random.Random(options.seed), 0
    print(f"{'engine':7}{'killed':16}{'exit':>5}{'seconds':>9}{'finished':>10}  {'again':8}last message")
    cases = [(engine, victim) for engine in options.engines for victim in VICTIMS[engine]]
    chosen = [case for case in cases if not options.victims or case[1] in options.victims]
    with TemporaryDirectory() as base:
        for number, (engine, victim) in enumerate(chosen * options.count):
            folder = Path(base) / str(number)
            folder.mkdir()
            trial = kill_in_a_comparison(engine, victim, folder, options.epochs, chance.uniform(0, 1))
            failed += not trial.equal
            print(f"{engine:7}{victim:16}{trial.describe()}", flush=True)
            if not trial.equal:
                print(trial.messages, trial.said_again, sep="\n---\n", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
