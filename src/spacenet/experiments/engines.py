"""Where runs are computed: in this process, in others on this machine, or on a Dask or Ray cluster that exists already.

A worker that dies takes nothing with it: runs save their state in their folders, so whatever has no result is handed
out again and goes on where it stopped. On a cluster the folders must lie where all workers see them. A single run can
be shared by several processes through lightning-fabric, see `launch`.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch

from spacenet.config.engine import EngineConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError, SpacenetError
from spacenet.experiments.clusters import TRIES, WorkersDied, connect, describe_error, run_on_cluster
from spacenet.training.hardware import find_hardware
from spacenet.utils.extras import require_extra
from spacenet.utils.processes import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], engine: EngineConfig
) -> Iterator[tuple[int, Result]]:
    """Do the work for every item and yield results as they come, each with the position of its item.

    `work` must not raise; it may be called again. Raises `WorkersDied` if that does not help, and `ClusterLost` if
    there is no cluster any more.
    """
    if engine.engine == "local":
        yield from _run_here(work, items, engine.workers)
        return
    cluster = connect(engine.engine, str(engine.address))
    try:
        yield from run_on_cluster(cluster, work, items, engine.workers)
    finally:
        cluster.close()


def _run_here(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int | None
) -> Iterator[tuple[int, Result]]:
    """In processes of this machine. They end with this one."""
    import joblib

    left, call = dict(enumerate(items)), joblib.delayed(_numbered)
    for attempt in range(TRIES):
        try:
            calls = [call(os.getpid(), work, number, item) for number, item in left.items()]
            for number, result in _parallel(workers or -1)(calls):
                del left[number]
                yield number, result
            return
        except (SpacenetError, GeneratorExit):
            raise
        except Exception as error:  # joblib has several for a worker that is gone
            if attempt == TRIES - 1:
                codes = re.search(r"exit codes of the workers are \{(.*)\}", str(error))
                reason = describe_error(error) + (f" Exit codes: {codes[1]}." if codes else "")
                raise WorkersDied(f"workers died {TRIES} times ({reason})") from error


def _parallel(workers: int) -> Any:
    import joblib

    # No more in advance than joblib's queue takes: its thread fails if it is stopped while others wait for a place.
    settings = {"n_jobs": workers, "return_as": "generator_unordered", "batch_size": 1, "pre_dispatch": "2 * n_jobs"}
    try:
        return joblib.Parallel(**settings, backend="loky", initializer=end_with_parent, initargs=(os.getpid(),))
    except TypeError:  # joblib < 1.5: a worker that never gets a run does not watch its parent
        return joblib.Parallel(**settings)


def _numbered(parent: int, work: Callable[[Item], Result], number: int, item: Item) -> tuple[int, Result]:
    if os.getpid() != parent:  # with one worker joblib stays in this process
        end_with_parent(parent)
    return number, work(item)


def launch(settings: TrainingConfig, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call `function(hardware, *arguments)` in as many processes as the settings ask for; returns the first's result.

    They share a run: every process holds the whole method and the whole task. Gradients are added up before each step
    and batch norm's statistics averaged after each epoch, so all processes move the same connections and end in the
    same bits; one of them writes.

    The function must be one that a fresh process can import. What it returns must be small and hold no tensors: it
    comes through a pipe that is only read when the processes have ended.
    """
    hardware = find_hardware(settings)
    on_gpu = hardware.device.type == "cuda"
    if on_gpu and torch.cuda.device_count() < settings.devices:
        raise SettingsError(
            f"{settings.devices} GPUs are needed, there are {torch.cuda.device_count()}", setting="devices"
        )
    require_extra("devices", "distributed", "lightning_fabric.strategies", "lightning.fabric.strategies")
    library = require_extra("devices", "distributed", "lightning_fabric", "lightning.fabric")
    # Fresh processes on either kind of device: what runs here (threads, a GPU in use) must not be forked.
    strategy = library.strategies.DDPStrategy(start_method="spawn", process_group_backend="nccl" if on_gpu else "gloo")
    fabric = library.Fabric(accelerator="cuda" if on_gpu else "cpu", devices=settings.devices, strategy=strategy)
    result: Result = fabric.launch(partial(_in_process, os.getpid(), settings, function, arguments)).sealed
    return result


def _in_process(
    parent: int, settings: TrainingConfig, function: Callable[..., Any], arguments: tuple[Any, ...], fabric: Any
) -> SimpleNamespace:
    """The result in a wrapping: fabric would search it for tensors otherwise, and refuses frozen dataclasses."""
    end_with_parent(parent)
    hardware = find_hardware(settings)
    device = torch.device("cuda", fabric.local_rank) if hardware.device.type == "cuda" else hardware.device
    return SimpleNamespace(sealed=function(dataclasses.replace(hardware, device=device, fabric=fabric), *arguments))
