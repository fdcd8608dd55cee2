"""A run in several processes that share every batch, through lightning-fabric.

Every process holds the whole method and the whole task. Gradients are added up before each step and batch norm's
statistics averaged after each epoch, so all processes move the same connections and end in the same bits; one of them
writes.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.training.hardware import find_hardware
from spacenet.utils.extras import require_extra

Result = TypeVar("Result")


def launch(settings: TrainingConfig, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call `function(hardware, *arguments)` in as many processes as the settings ask for; returns the first's result.

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
    sealed: _Sealed = fabric.launch(partial(_in_process, settings, function, arguments))
    result: Result = sealed.content
    return result


class _Sealed:
    """What fabric must not look into: it would search it for tensors, and refuses frozen dataclasses."""

    def __init__(self, content: Any) -> None:
        self.content = content


def _in_process(
    settings: TrainingConfig, function: Callable[..., Any], arguments: tuple[Any, ...], fabric: Any
) -> _Sealed:
    hardware = find_hardware(settings)
    device = torch.device("cuda", fabric.local_rank) if hardware.device.type == "cuda" else hardware.device
    return _Sealed(function(dataclasses.replace(hardware, device=device, fabric=fabric), *arguments))
