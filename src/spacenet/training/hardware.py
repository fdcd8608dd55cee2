"""Where a run computes: one device, alone or as one of several processes that share every batch."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.space.blueprint import CPU
from spacenet.utils.text import plural


@dataclass(frozen=True)
class Hardware:
    """A device and a precision; with `fabric`, also the other processes."""

    device: torch.device = CPU
    precision: str = "32"
    fabric: Any = None

    @property
    def graphs(self) -> bool:
        """Whether a step can be recorded once and replayed: on one GPU alone."""
        return self.device.type == "cuda" and self.fabric is None

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes files and logs."""
        return self.fabric is None or self.fabric.global_rank == 0

    def autocast(self) -> AbstractContextManager[Any]:
        """Inside it, training computes in the chosen precision."""
        if self.precision == "32":
            return nullcontext()
        # Without a cache: a weight that was cast in one step must not be found again when a graph is replayed.
        return torch.autocast(self.device.type, dtype=torch.bfloat16, cache_enabled=False)

    def share(self, rows: Tensor) -> tuple[Tensor, float]:
        """This process's part of a batch, and the weight of its mean in that over the batch; weights add up to 1."""
        world = 1 if self.fabric is None else int(self.fabric.world_size)
        if world == 1 or len(rows) < 2 * world:  # too small to share: all processes get all of it
            return rows, 1 / world
        own = rows.tensor_split(world)[int(self.fabric.global_rank)]
        return own, len(own) / len(rows)

    def add_up(self, tensors: Iterable[Tensor], weight: float = 1.0) -> None:
        """Replace each tensor by its sum over all processes, each times its `weight`. All get the same bits."""
        if self.fabric is not None:
            for tensor in tensors:
                tensor.copy_(self.fabric.all_reduce(tensor * weight, reduce_op="sum"))

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.fabric is not None:
            self.add_up(tensors, 1 / self.fabric.world_size)

    def describe(self) -> str:
        on_gpu, threads = self.device.type == "cuda", plural(torch.get_num_threads(), "thread")
        name = torch.cuda.get_device_name(self.device) if on_gpu else f"CPU, {threads}"
        return name if self.fabric is None else f"{self.fabric.world_size} × {name}"


def find_hardware(settings: TrainingConfig) -> Hardware:
    """The device that the settings ask for, set up so that the same seed gives the same bits."""
    name = settings.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            raise SettingsError(f"there is no GPU that torch {torch.__version__} can use; try cpu", setting="device")
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    return Hardware(torch.device(name), settings.precision)
