"""The same runs on every engine, for real, with a worker killed in the middle."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from spacenet.config.engine import EngineConfig
from spacenet.errors import SettingsError
from spacenet.experiments.clusters import WorkersDied
from spacenet.experiments.engines import run_parallel
from spacenet.experiments.jobs import execute_all
from spacenet.experiments.run import STATE
from tests.campaigns.engines import (
    SECONDS_TO_END,
    alive,
    compare_command,
    descendants,
    end_processes,
    start,
    wait_until,
)
from tests.experiments.support import config, outcome, seed_jobs
from tests.support import clouds_file

RAY_HEAD = """
import ray, sys
cluster = ray.init("local", num_cpus=1, include_dashboard=False, logging_level="error")
print(cluster.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""
Cluster = tuple[EngineConfig, Callable[[], list[int]]]
"""How to reach it, and the processes that do its work at the moment."""


def children(word: str) -> list[int]:
    found = (p for p in psutil.process_iter(["cmdline"]) if word in " ".join(p.info["cmdline"] or []))
    own = {p.pid for p in psutil.Process().children(recursive=True)}
    return [p.pid for p in found if p.pid in own and "resource_tracker" not in " ".join(p.info["cmdline"])]


@contextmanager
def this_machine() -> Iterator[Cluster]:
    yield EngineConfig(workers=2), lambda: children("loky")


@contextmanager
def dask() -> Iterator[Cluster]:
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster:
        yield (
            EngineConfig("dask", cluster.scheduler_address),
            lambda: [worker.pid for worker in cluster.workers.values()],
        )


@contextmanager
def ray() -> Iterator[Cluster]:
    pytest.importorskip("ray")
    command = [sys.executable, "-c", RAY_HEAD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
        assert head.stdin is not None
        assert head.stdout is not None
        yield EngineConfig("ray", head.stdout.readline().strip()), lambda: children("ray::spacenet-run")
        head.stdin.close()


def kill_one(folders: list[Path], pids: Callable[[], list[int]], killed: list[int]) -> None:
    """As soon as a run has saved something."""
    wait_until(lambda: any((folder / STATE).is_file() for folder in folders))
    killed += pids()[:1]
    os.kill(killed[0], signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cluster", "seeds"), [(this_machine, range(2)), (dask, range(1)), (ray, range(1))])
def test_results_are_the_same_though_a_worker_is_killed(
    cluster: Callable[[], Any], seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef0123456789abcdef")
    wanted = config(tmp_path, training={"epochs": 20})
    alone, parallel = ([tmp_path / name / f"seed-{seed}" for seed in seeds] for name in ("alone", "parallel"))
    list(execute_all(seed_jobs(wanted, seeds, tmp_path / "alone"), EngineConfig(workers=1)))
    killed: list[int] = []
    with cluster() as (engine, pids):
        assassin = threading.Thread(target=kill_one, args=(parallel, pids, killed))
        assassin.start()
        outcomes = list(execute_all(seed_jobs(wanted, seeds, tmp_path / "parallel"), engine))
        assassin.join()
    assert len(killed) == 1
    assert sorted(str(o.job.folder) for o in outcomes) == list(map(str, parallel))
    assert not any(o.error for o in outcomes)
    assert [outcome(folder) for folder in parallel] == [outcome(folder) for folder in alone]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    command = compare_command(clouds_file(tmp_path), out, ["--workers", "2"], epochs=5000)
    client = start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: client.poll() is not None or list(out.glob(f"*/*/{STATE}")))
        workers = descendants(client.pid)
        assert len(workers) >= 2
        client.send_signal(number)
        wait_until(lambda: client.poll() is not None and not alive(workers), SECONDS_TO_END)
        _, messages = client.communicate()
    finally:
        end_processes(client)
    if number == signal.SIGTERM:
        assert client.returncode == 143
        assert messages.splitlines()[-1] == "spacenet: terminated; the same command continues where it stopped"
        assert "Traceback" not in messages


def dies(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


@pytest.mark.filterwarnings("ignore")
def test_workers_that_keep_dying_are_given_up_and_what_is_done_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.experiments.engines.TRIES", 2)
    done: list[tuple[int, int]] = []
    with pytest.raises(WorkersDied, match=r"workers died 2 times .*SIGKILL"):
        done.extend(run_parallel(dies, [0, 1], EngineConfig(workers=2)))
    assert done in ([], [(0, 0)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, r"workers: 0 is out of range \(1 or more\)"),
        ({"address": "tcp://there:1"}, "address: tcp://there:1 is the address of a cluster; set engine to dask or ray"),
        ({"engine": "dask"}, "address: the address of the dask cluster is missing"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        EngineConfig(**settings)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("spacenet.experiments.clusters.PATIENCE", 0.3)
    with pytest.raises(SettingsError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        list(run_parallel(dies, [0], EngineConfig("dask", "tcp://127.0.0.1:9")))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"engine needs distributed.*spacenet-cl\[dask\]"):
        list(run_parallel(dies, [0], EngineConfig("dask", "tcp://127.0.0.1:9")))
