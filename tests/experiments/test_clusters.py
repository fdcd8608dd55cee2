"""What is said and kept when a cluster loses its workers, its scheduler or its head."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spacenet.experiments import clusters
from spacenet.experiments.clusters import (
    TRIES,
    ClusterLost,
    DaskCluster,
    Ended,
    RayCluster,
    WaitingNotice,
    WorkersDied,
    run_on_cluster,
    still_wanted,
)

pytestmark = pytest.mark.filterwarnings("ignore")


class Unreliable:
    """A cluster on which the work for item 1 always kills its worker."""

    address = "here"

    def __init__(self) -> None:
        self.pending: dict[Any, int] = {}
        self.submitted: list[int] = []
        self.most = 0

    def submit(self, work: Callable[[Any], Any], number: int, item: Any) -> None:
        self.submitted.append(number)
        self.pending[object()] = number
        self.most = max(self.most, len(self.pending))

    def collect(self) -> list[Ended]:
        _, number = self.pending.popitem()
        error = OSError("worker 7 was killed\nmore") if number == 1 else None
        return [(number, None if error else 10 * number, error)]

    def check(self) -> str:
        return ""

    def close(self) -> None: ...


def test_an_item_that_kills_its_workers_is_given_up_and_the_others_are_done() -> None:
    cluster, done = Unreliable(), list[tuple[int, Any]]()
    with pytest.raises(WorkersDied, match=rf"of here died {TRIES} times \(OSError: worker 7 was killed\)") as caught:
        done.extend(run_on_cluster(cluster, str, range(4), at_once=2))
    assert not isinstance(caught.value, ClusterLost)
    assert sorted(done) == [(0, 0), (2, 20), (3, 30)]
    assert sorted(cluster.submitted) == [0, *[1] * TRIES, 2, 3]
    assert cluster.most == 2


def test_waiting_is_said_at_intervals_and_that_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, messages = [100.0], list[str]()
    monkeypatch.setattr(clusters, "time", SimpleNamespace(monotonic=lambda: now[0]))
    log = SimpleNamespace(info=lambda text, *values: messages.append(text % values), warning=None)
    log.warning = log.info
    monkeypatch.setattr(clusters, "log", log)
    notice, said = WaitingNotice(), list[int]()
    for second in range(130):
        now[0] = 100.0 + second
        notice.update("no worker is connected to tcp://there")
        if len(messages) > len(said):
            said.append(second)
    notice.update("")
    notice.update("")
    assert said == [5, 65, 125]
    assert messages[0] == "no worker is connected to tcp://there; waiting, Ctrl-C ends"
    assert messages[3:] == ["workers are there again; going on"]


@pytest.fixture
def dask() -> Iterator[Any]:
    """A scheduler in this process, without workers at first."""
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=0, protocol="tcp", host="127.0.0.1", silence_logs=50, **options) as cluster:
        yield cluster


def test_dask_without_workers_is_waited_for(dask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SAY_AFTER", 0.0)
    monkeypatch.setattr(clusters, "POLL", 0.2)

    def warn(text: str, missing: str) -> None:
        said.append(missing)
        dask.scale(1)

    said: list[str] = []
    monkeypatch.setattr(clusters.log, "warning", warn)
    cluster = DaskCluster[int, str](dask.scheduler_address)
    try:
        assert sorted(run_on_cluster(cluster, str, [7, 8])) == [(0, "7"), (1, "8")]
    finally:
        cluster.close()
    assert said[0] == f"no worker is connected to {dask.scheduler_address}"


def test_a_lost_dask_scheduler_is_named(dask: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = DaskCluster[float, None](dask.scheduler_address)
    dask.scale(1)
    closing = threading.Timer(0.5, dask.close)
    closing.start()
    try:
        with pytest.raises(ClusterLost, match=f"the Dask scheduler at {dask.scheduler_address} is gone"):
            list(run_on_cluster(cluster, time.sleep, [2.0]))
    finally:
        cluster.close()
        closing.join()
    assert not [record for record in caplog.records if record.name == "distributed.client" and record.exc_info]


def wait_until_unwanted(file: Path) -> None:
    assert still_wanted()
    file.with_suffix(".begun").touch()
    while still_wanted():
        time.sleep(0.01)
    file.touch()


def test_work_on_dask_is_not_wanted_any_more_when_its_client_has_gone(dask: Any, tmp_path: Path) -> None:
    dask.scale(1)
    cluster = DaskCluster[Path, None](dask.scheduler_address)
    cluster.submit(wait_until_unwanted, 0, tmp_path / "ended")
    wait_for(tmp_path / "ended.begun")
    cluster.close()
    wait_for(tmp_path / "ended")


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < deadline, file
        time.sleep(0.01)


def ray_cluster(address: str, nodes: list[dict[str, Any]]) -> RayCluster[Any, Any]:
    """One that is connected to the node "here"."""
    cluster = object.__new__(RayCluster)
    vars(cluster).update(address=address, pending={}, _node="here", _ray=SimpleNamespace(nodes=lambda: nodes))
    return cluster


def test_ray_without_cores_is_waited_for_and_a_lost_node_or_head_is_named() -> None:
    here = {"NodeID": "here", "Alive": True, "Resources": {"CPU": 2.0}}
    bare, dead = {**here, "Resources": {}}, {**here, "Alive": False}
    there = {**here, "NodeID": "there"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert ray_cluster(address, [here]).check() == ""
        assert ray_cluster(address, [bare, there]).check() == ""
        assert ray_cluster(address, [bare]).check() == f"no node of the Ray cluster at {address} has a CPU"
        with pytest.raises(ClusterLost, match="the Ray node on this machine, of the cluster at 127.0.0.1"):
            ray_cluster(address, [dead, there]).check()
    with pytest.raises(ClusterLost, match=f"the Ray head at {address} is gone"):
        ray_cluster(address, [here]).check()
