"""Where runs are computed: in this process, in others on this machine, or on a Dask or Ray cluster that exists already.

All go through joblib. A worker that dies takes nothing with it: runs save their state in their folders, so whatever
has no result is handed out again and goes on where it stopped. On a cluster the folders must lie where all workers see
them. A single run can be shared by several processes through lightning-fabric, see `launch`.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch

from spacenet.config.engine import EngineConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError, SpacenetError
from spacenet.training.hardware import find_hardware
from spacenet.utils.extras import require_extra

TRIES = 3
PATIENCE = 10
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkersDied(SpacenetError):
    """Workers kept dying; what they had finished is kept."""

    exit_code = 1


def run_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], engine: EngineConfig
) -> Iterator[tuple[int, Result]]:
    """Do the work for every item and yield results as they come, each with the position of its item.

    `work` must not raise; it may be called again. Raises `WorkersDied` if that does not help.
    """
    import joblib

    left, call = dict(enumerate(items)), joblib.delayed(_numbered)
    with _connected(engine) as settings:
        for attempt in range(TRIES):
            try:
                calls = [call(work, number, item) for number, item in left.items()]
                for number, result in joblib.Parallel(**settings, batch_size=1, pre_dispatch="all")(calls):
                    del left[number]
                    yield number, result
                return
            except (SpacenetError, GeneratorExit):
                raise
            except Exception as error:  # each engine has its own for a worker that is gone
                reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
                if attempt == TRIES - 1:
                    raise WorkersDied(
                        f"workers died {TRIES} times ({reason}); {len(left)} of {len(items)} runs are not finished"
                    ) from error


def _numbered(work: Callable[[Item], Result], number: int, item: Item) -> tuple[int, Result]:
    return number, work(item)


@contextmanager
def _connected(engine: EngineConfig) -> Iterator[dict[str, Any]]:
    """What joblib is told, while the connection to a cluster stands."""
    from joblib import parallel_config

    order = "list" if engine.engine == "ray" else "generator_unordered"  # Ray gives its results back as a list only
    settings = {"n_jobs": engine.workers or -1, "return_as": order}
    if engine.engine == "local":
        yield settings
        return
    connect = _dask if engine.engine == "dask" else _ray
    with connect(str(engine.address)), parallel_config(engine.engine):
        yield settings


def _dask(address: str) -> AbstractContextManager[Any]:
    library = require_extra("engine", "dask", "distributed")
    try:
        client: AbstractContextManager[Any] = library.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"no Dask scheduler answers at {address}: {error}", setting="address") from error
    return client


@contextmanager
def _ray(address: str) -> Iterator[None]:
    library = require_extra("engine", "ray", "ray")
    try:
        library.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingsError(f"no Ray cluster answers at {address}: {error}", setting="address") from error
    require_extra("engine", "ray", "ray.util.joblib").register_ray()
    try:
        yield
    finally:
        library.shutdown()


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
    result: Result = fabric.launch(partial(_in_process, settings, function, arguments)).sealed
    return result


def _in_process(
    settings: TrainingConfig, function: Callable[..., Any], arguments: tuple[Any, ...], fabric: Any
) -> SimpleNamespace:
    """The result in a wrapping: fabric would search it for tensors otherwise, and refuses frozen dataclasses."""
    hardware = find_hardware(settings)
    device = torch.device("cuda", fabric.local_rank) if hardware.device.type == "cuda" else hardware.device
    return SimpleNamespace(sealed=function(dataclasses.replace(hardware, device=device, fabric=fabric), *arguments))
