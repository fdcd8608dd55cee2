"""PathNet: evolution chooses the path that a task takes through a network of modules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from spacenet.config.ranges import Choice, Range, Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.subnetworks import Subnetworks
from spacenet.space.blueprint import BATCH_STATS, CPU, Blueprint, Params
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.seeding import generator


@dataclass(frozen=True)
class PathNetSettings(MethodSettings):
    """The modules, and how paths through them evolve."""

    modules: int = 10
    """Modules that a layer's units are cut into."""
    active: int = 3
    """Modules of each layer that a path goes through, at most."""
    layer: int = 8
    """Paths that evolve. All are trained in every epoch, each on its share of the batches, and then meet in pairs."""
    refine_epochs: float = 0.25
    """Epochs after that in which the fittest path is trained alone, as a part of the planned epochs."""

    def __post_init__(self) -> None:
        if not 1 <= self.modules <= 255:
            raise SettingsError(f"modules: {self.modules} is not a number of modules (need 1 to 255)")
        if not 1 <= self.active <= self.modules:
            raise SettingsError(f"active: {self.active} of {self.modules} modules cannot be active (need 1 or more)")
        if self.layer < 2:
            raise SettingsError(f"layer: {self.layer} is too small for a comparison (need 2 or more)")
        if self.refine_epochs < 0.0:
            raise SettingsError(f"refine-epochs: {self.refine_epochs} is not a part of the epochs (need 0 or more)")


class PathNet(Subnetworks):
    """Paths compete at learning the task; what the best one goes through is frozen, and the rest starts anew.

    Unlike in the published method, the modules of a layer are groups of its units that stand side by side (published:
    small layers whose outputs are added up), so weights into a frozen module from units that never shared a path with
    it are free. Paths take turns batch by batch and meet once an epoch (published: two at a time, 50 batches each), and
    the best one is trained on alone: tasks here are short.
    """

    name = "pathnet"
    strategy = "Architectural"
    reference = (
        "Fernando, Banarse, Blundell, Zwols, Ha, Rusu, Pritzel, Wierstra: "
        "PathNet: Evolution Channels Gradient Descent in Super Neural Networks. arXiv:1701.08734, 2017"
    )
    settings_from = "Modules as published for MNIST; layer and refining chosen here; the stream's own training."
    Settings = PathNetSettings
    settings: PathNetSettings
    search_space: ClassVar[Mapping[str, Range]] = {
        "training.learning_rate": Uniform(0.01, 0.3, log=True),
        "method.active": Uniform(2, 6, integer=True),
        "method.layer": Choice((4, 8, 16)),
    }
    cuda_graph_safe = False  # paths differ in width

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.limits = torch.tensor([min(self.settings.modules, p.size) for p in blueprint.hidden])[:, None]
        """How many modules each hidden layer has: no more than units."""
        self.paths: list[Tensor] = []
        """The path of each task learned: for every hidden layer the numbers of its modules; they may repeat."""
        self.layer = torch.zeros(0)
        self.best = torch.zeros(0)
        self.turns: list[dict[str, Tensor]] = []
        """The units of the paths that are trained in this epoch; they take turns, batch by batch."""
        self.turn, self.planned = 0, 0
        self.fitness = torch.zeros(0)
        """For each of them the samples it was right about in this epoch, and those it was trained on."""

    # How paths evolve

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        genes = (self.settings.layer, len(self.limits), self.settings.active)
        drawn = torch.rand(*genes, generator=generator(self.seed, "paths", task.index))
        self.layer = (drawn * self.limits).to(torch.uint8)
        self.best = self.layer[0]
        self._open()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.layer, self.best = tensors["layer"].clone(), tensors["best"].clone()
        self._open()

    def task_state(self) -> dict[str, Tensor]:
        return {"layer": self.layer, "best": self.best}

    def _open(self) -> None:
        """What no task's path goes through is free."""
        self.freeze({name: ~used for name, used in self.used().items()} | self.free_outputs())
        self._train([self.best])

    def epochs(self, planned: int) -> int:
        self.planned = planned
        return planned + round(self.settings.refine_epochs * planned)

    def begin_epoch(self, epoch: int) -> None:
        evolves = epoch < self.planned
        self._train(list(self.layer) if evolves else [self.best])

    def _train(self, paths: list[Tensor]) -> None:
        self.turns, self.turn = [self.units_of(path) for path in paths], 0
        self.fitness = torch.zeros(2, len(paths), device=self.device)

    def statistics(self) -> list[Tensor]:
        """With the fitness, so that processes that share a batch compare the same numbers."""
        return [*super().statistics(), self.fitness]

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        self.fitness[0, self.turn] += (output.detach().argmax(1) == self.target(batch)).sum()
        self.fitness[1, self.turn] += len(output)
        return super().loss(output, batch)

    def step(self, optimizer: Optimizer) -> None:
        super().step(optimizer)
        self.turn = (self.turn + 1) % len(self.turns)

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if epoch >= self.planned:
            return
        fitness = (self.fitness[0] / self.fitness[1].clamp(min=1)).cpu()
        self.best = self.layer[fitness.argmax()].clone()
        self.layer = next_generation(
            self.layer, fitness, self.limits, generator(self.seed, "evolve", self.tasks_learned, epoch)
        )
        if last:  # what settles is the best path
            self._train([self.best])

    # What a path is

    def units_of(self, path: Tensor) -> dict[str, Tensor]:
        """The units that a path goes through, by hidden layer."""
        units = {}
        for layer, genes, limit in zip(self.blueprint.hidden, path, self.limits, strict=True):
            module = torch.arange(layer.size) * limit // layer.size
            units[layer.name] = torch.isin(module, genes.long()).nonzero()[:, 0].to(self.device)
        return units

    def used(self) -> dict[str, Tensor]:
        """For each value inside the network which of its numbers some task's path goes through."""
        inside = {key: p.name for p in self.blueprint.hidden for key in p.keys()}
        names = [*inside, *(link.name for link in self.inner_links())]
        used = {name: torch.zeros_like(self.values[name], dtype=torch.bool) for name in names}
        for units in map(self.units_of, self.paths):
            for key, layer in inside.items():
                used[key][units[layer]] = True
            for link in self.inner_links():
                sources = units.get(link.source, torch.arange(self.blueprint.input.size, device=self.device))
                used[link.name][units[link.target][:, None], sources] = True
        return used

    def part(self, values: Params, task: int) -> dict[str, Tensor]:
        """The path as a network of its own: units outside of it are not there."""
        units = self.units_of(self.paths[task]) if task < self.tasks_learned else self.turns[self.turn]
        part = dict(values)
        for link in self.blueprint.links:
            for axis, end in enumerate((link.target, link.source)):
                if end in units:
                    part[link.name] = part[link.name].index_select(axis, units[end])
        for layer in self.blueprint.hidden:
            for key in (*layer.keys(), layer.name + BATCH_STATS):
                if key in part and len(part[key]):
                    part[key] = part[key].index_select(0, units[layer.name])
        return part

    def forward(self, batch: Batch) -> Tensor:
        model = self.model_of({**self.in_training(), **self.uses_batch_stats}, self.tasks_learned)
        output = self.blueprint.forward(model, batch.x)
        for layer in self.blueprint.hidden:  # batch norm changed the path's own copy of its statistics
            for key, value in layer.keys().items():
                if not value.trained:
                    self.values[key].data.index_copy_(0, self.turns[self.turn][layer.name], model[key])
        return output

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.paths.append(self.best)
        self.turns = []
        learned = self.values
        self.values = {}
        self.build()
        for name, used in self.used().items():
            self._set(name, torch.where(used, learned[name].data, self.values[name].data), learned[name].requires_grad)
        for name in self.free_outputs():
            self._set(name, learned[name].data)

    # Being saved

    def extra(self) -> dict[str, Tensor]:
        return {"paths": torch.stack(self.paths)} if self.paths else {}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.paths = list(tensors["paths"].clone()) if self.tasks_learned else []


def next_generation(layer: Tensor, fitness: Tensor, limits: Tensor, rng: Generator) -> Tensor:
    """Paths meet in pairs; the less fit of two is overwritten by a mutated copy of the other (at a draw, the second).

    Each of a path's numbers changes with a probability of one in all its numbers, by -2 to 2, round the layer's end.
    """
    layer = layer.clone()
    order = torch.randperm(len(layer), generator=rng).tolist()
    for pair in zip(order[::2], order[1::2], strict=False):
        winner, loser = sorted(pair, key=lambda path: -float(fitness[path]))
        genes = layer[winner].long()
        mutates = torch.rand(genes.shape, generator=rng) < 1 / genes.numel()
        shift = torch.randint(-2, 3, genes.shape, generator=rng)
        layer[loser] = ((genes + mutates * shift) % limits).to(layer.dtype)
    return layer
