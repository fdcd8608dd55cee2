"""Runs on a Dask or Ray cluster that exists already.

A run whose worker dies is handed out again and goes on from its folder. A cluster without workers is waited for, and
the log says so. A scheduler or a head that is gone ends everything with `ClusterLost`.
"""

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

from spacenet.errors import SettingsError, SpacenetError
from spacenet.utils.extras import require_extra
from spacenet.utils.processes import sigterm_kept

log = logging.getLogger("spacenet")
TRIES = 3
PATIENCE = 10
"""Seconds in which a scheduler, a head or a result has to answer."""
POLL = 1.0
"""Seconds in which the state of the cluster is looked at once."""
SAY_AFTER, SAY_AGAIN = 5.0, 60.0
"""Seconds without a worker after which the log says so; seconds until it says so again."""
Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Item], Result]
Ended = tuple[int, Any, Exception | None]
"""The position of an item, its result, and if there is none, why."""
_wanted: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)


class WorkersDied(SpacenetError):
    """Workers kept dying; what they had finished is kept."""

    exit_code = 1


class ClusterLost(WorkersDied):
    """The scheduler or the head of a cluster is gone, and all its workers with it."""


def still_wanted() -> bool:
    """In a worker: whether the process that asked for this run, and the cluster, are still there."""
    return _wanted.get()()


def describe_error(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class Cluster(Protocol):
    """What a cluster has to offer."""

    address: str
    pending: dict[Any, int]
    """What was submitted and has not been collected, with the position of its item."""

    def submit(self, work: Callable[[Any], Any], number: int, item: Any) -> None: ...

    def collect(self) -> list[Ended]:
        """What has ended; waits for it for at most `POLL` seconds."""

    def check(self) -> str:
        """What is missing to go on, or nothing. Raises `ClusterLost`."""

    def close(self) -> None: ...


def connect(engine: str, address: str) -> Cluster:
    """Connect to a cluster."""
    return DaskCluster(address) if engine == "dask" else RayCluster(address)


def run_on_cluster(
    cluster: Cluster, work: Work[Item, Result], items: Sequence[Item], at_once: int | None = None
) -> Iterator[tuple[int, Result]]:
    """Do the work for every item and yield results as they come, each with the position of its item."""
    waiting, tries, given_up = deque(range(len(items))), [0] * len(items), list[str]()
    notice = WaitingNotice()
    while waiting or cluster.pending:
        while waiting and len(cluster.pending) < (at_once or len(items)):
            number = waiting.popleft()
            cluster.submit(work, number, items[number])
        for number, result, error in cluster.collect():
            if error is None:
                yield number, result
                continue
            tries[number] += 1
            if tries[number] < TRIES:
                waiting.append(number)
            else:
                given_up.append(describe_error(error))
        notice.update(cluster.check())
    if given_up:
        reasons = ", ".join(dict.fromkeys(given_up))
        raise WorkersDied(f"workers of {cluster.address} died {TRIES} times ({reasons})")


class WaitingNotice:
    """Says in the log what is being waited for, at intervals."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._next, self._said = SAY_AFTER, False

    def update(self, missing: str) -> None:
        """Called again and again with what is missing, or nothing."""
        now = time.monotonic()
        if not missing:
            if self._said:
                log.info("workers are there again; going on")
            self._since, self._next, self._said = None, SAY_AFTER, False
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= self._next:
            log.warning("%s; waiting, Ctrl-C ends", missing)
            self._next, self._said = now - self._since + SAY_AGAIN, True


class DaskCluster(Generic[Item, Result]):
    """A Dask cluster, through its scheduler."""

    def __init__(self, address: str) -> None:
        self.address, self.pending = address, dict[Any, int]()
        library = require_extra("engine", "dask", "distributed")
        try:
            self._client = library.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise SettingsError(f"no Dask scheduler answers at {address}: {error}", setting="address") from error

    def submit(self, work: Work[Item, Result], number: int, item: Item) -> None:
        # A key of its own: Dask would take two calls with the same arguments for one.
        future = self._client.submit(_work_on_dask, work, item, key=f"spacenet-{number}-{uuid4().hex}", pure=False)
        self.pending[future] = number

    def collect(self) -> list[Ended]:
        deadline = time.monotonic() + POLL
        while time.monotonic() < deadline:
            if ended := [future for future in self.pending if future.status in ("finished", "error")]:
                return [self._result(future) for future in ended]
            if self._lost():
                break
            time.sleep(0.05)
        return []

    def _result(self, future: Any) -> Ended:
        number = self.pending.pop(future)
        try:
            return number, future.result(timeout=PATIENCE), None
        except Exception as error:  # Dask has many for a worker that is gone
            return number, None, error

    def _lost(self) -> bool:
        return self._client.status != "running" or any(future.status == "cancelled" for future in self.pending)

    def check(self) -> str:
        if self._lost():
            raise ClusterLost(f"the Dask scheduler at {self.address} is gone")
        workers = self._client.scheduler_info(n_workers=-1)["workers"] if self.pending else {"any"}
        return "" if workers else f"no worker is connected to {self.address}"

    def close(self) -> None:
        chatter = logging.getLogger("distributed.client")
        level = chatter.level
        if self._lost():  # it is still trying to connect, and would log a traceback when that is cancelled
            chatter.setLevel(logging.CRITICAL + 1)
        try:
            self._client.close(timeout=2)
        finally:
            chatter.setLevel(level)


def _work_on_dask(work: Work[Item, Result], item: Item) -> Result:
    library = require_extra("engine", "dask", "distributed")
    worker = library.get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        """Dask cannot stop a thread: if the client has gone, it marks the task as cancelled and lets it run on."""
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name in ("running", "paused")

    _wanted.set(wanted)
    try:
        return work(item)
    finally:
        _wanted.set(lambda: True)


class RayCluster(Generic[Item, Result]):
    """A Ray cluster, through the node that this process is connected to. Ray itself ends the work of a lost client."""

    def __init__(self, address: str) -> None:
        self.address, self.pending = address, dict[Any, int]()
        self._ray = library = require_extra("engine", "ray", "ray")
        try:
            with sigterm_kept():
                library.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingsError(f"no Ray cluster answers at {address}: {error}", setting="address") from error
        context = library.get_runtime_context()
        self.address, self._node = context.gcs_address, context.get_node_id()
        self._task = library.remote(_work_on_ray).options(num_cpus=1, max_retries=0, name="spacenet-run")

    def submit(self, work: Work[Item, Result], number: int, item: Item) -> None:
        self.pending[self._task.remote(work, item)] = number

    def collect(self) -> list[Ended]:
        ended, _ = self._ray.wait(list(self.pending), timeout=POLL)
        return [self._result(reference) for reference in ended]

    def _result(self, reference: Any) -> Ended:
        number = self.pending.pop(reference)
        try:
            return number, self._ray.get(reference, timeout=PATIENCE), None
        except Exception as error:  # Ray has many for a worker that is gone
            self.check()
            return number, None, error

    def check(self) -> str:
        # Asked first: if the head is gone, Ray's own functions wait for a minute and then end this process.
        if not _answers(self.address):
            raise ClusterLost(f"the Ray head at {self.address} is gone")
        nodes = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        if self._node not in nodes:
            raise ClusterLost(f"the Ray node on this machine, of the cluster at {self.address}, is gone")
        cores = sum(node["Resources"].get("CPU", 0) for node in nodes.values())
        return "" if cores >= 1 else f"no node of the Ray cluster at {self.address} has a CPU"

    def close(self) -> None:
        self._ray.shutdown()


def _work_on_ray(work: Work[Item, Result], item: Item) -> Result:
    return work(item)


def _answers(address: str) -> bool:
    """Whether a server accepts connections; asked twice, since a busy one may miss one."""
    host, _, port = address.rpartition(":")
    for _ in range(2):
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
        except OSError:
            time.sleep(0.5)
        else:
            return True
    return False
