"""PathNet: an evolutionary algorithm chooses the path of a task through a network of modules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Le
from torch import Generator, Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, Choice, Optimizer, Params, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.task_models import Subnetworks, cut
from spacenet.utils.tensors import take_tensors


@dataclass(frozen=True)
class PathNetSettings(PhantomSettings):
    """The modules, and how paths through them evolve."""

    modules: Annotated[int, Ge(1), Le(255)] = 10
    """Modules that the units of a layer are divided into."""
    active: Annotated[int, Ge(1), Le(255), Uniform(2, 6, integer=True)] = 3
    """Largest number of modules of each layer in a path."""
    population: Annotated[int, Ge(2), Le(1000), Choice((4, 8, 16))] = 8
    """Paths that evolve. In every epoch, each is trained on its share of the batches; then pairs are compared."""
    refine_epochs: Annotated[float, Ge(0), Le(100)] = 0.25
    """Epochs after that in which the fittest path is trained alone, as a fraction of the planned epochs."""

    def validate(self) -> None:
        super().validate()
        if self.active > self.modules:
            raise SettingsError(f"{self.active} is more than the {self.modules} modules of a layer", setting="active")


class PathNet(Subnetworks):
    """Paths compete at learning the task; the modules of the best one are frozen, and the rest is reinitialized.

    Unlike in the published method, the modules of a layer are groups of its units (published: small layers whose
    outputs are added), so the weights into a frozen module from units that never shared a path with it are trainable.
    Paths take turns batch by batch and are compared once an epoch (published: two at a time, 50 batches each), and the
    best one is then trained alone, because tasks are short here.
    """

    name = "pathnet"
    strategy = "Architectural"
    reference = (
        "Fernando, Banarse, Blundell, Zwols, Ha, Rusu, Pritzel, Wierstra: "
        "PathNet: Evolution Channels Gradient Descent in Super Neural Networks. arXiv:1701.08734, 2017"
    )
    settings_from = "Modules as published for MNIST; population and refining chosen here; the stream's own training."
    settings: PathNetSettings
    training_space: ClassVar = {"training.learning_rate": Uniform(0.01, 0.3, log=True)}
    cuda_graph_safe = False  # paths differ in width
    population: Tensor = kept("task/population", Tensor, on_cpu=True)
    best: Tensor = kept("task/best", Tensor, on_cpu=True)
    paths: Tensor = kept("paths", Tensor, on_cpu=True)
    """The path of each task learned: the numbers of its modules in every hidden layer; they may repeat."""
    turns: Sequence[dict[str, Tensor]] = ()
    """The units of the paths that are trained in this epoch, taking turns batch by batch."""
    fitness: Tensor
    """For each of them, how many samples it classified correctly in this epoch, and how many it was trained on."""
    turn, planned = 0, 0

    def setup(self) -> None:
        super().setup()
        self.limits = torch.tensor([min(self.settings.modules, p.size) for p in self.blueprint.hidden])[:, None]
        """The number of modules in each hidden layer: at most one per unit."""

    # How paths evolve

    def begin_task(self, task: Task, data: Samples) -> None:
        genes = (self.settings.population, len(self.limits), self.settings.active)
        drawn = torch.rand(*genes, generator=self.rng("paths", task.index))
        self.population = (drawn * self.limits).to(torch.uint8)
        self.best = self.population[0]
        super().begin_task(task, data)

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        self._set_turns([self.best])

    def trainable_masks(self) -> dict[str, Tensor]:
        """What is in no earlier task's path, and the task's outputs."""
        return {name: ~used for name, used in self.used().items()} | self.task_output_masks()

    def epochs(self, planned: int) -> int:
        self.planned = planned
        return planned + round(self.settings.refine_epochs * planned)

    def begin_epoch(self, epoch: int) -> None:
        self._set_turns(list(self.population) if epoch < self.planned else [self.best])

    def _set_turns(self, paths: list[Tensor]) -> None:
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
        self.best = self.population[fitness.argmax()].clone()
        rng = self.rng("evolve", self.tasks_learned, epoch)
        self.population = next_generation(self.population, fitness, self.limits, rng)
        if last:  # batch norm is recalibrated for the best path
            self._set_turns([self.best])

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        shape = len(self.classes), len(self.limits), self.settings.active
        rest = take_tensors(state, {"paths": shape}, "paths", dtype=torch.uint8)
        if bool((state["paths"] >= self.limits).any()):
            raise ValueError("paths: a module that does not exist")
        super().check_state(rest, input_shape)

    # What a path is

    def units_of(self, path: Tensor) -> dict[str, Tensor]:
        """The units of a path, by hidden layer."""
        units = {}
        for layer, genes, limit in zip(self.blueprint.hidden, path, self.limits, strict=True):
            module = torch.arange(layer.size) * limit // layer.size
            units[layer.name] = torch.isin(module, genes.long()).nonzero()[:, 0].to(self.device)
        return units

    def used(self) -> dict[str, Tensor]:
        """For each inner parameter, which of its numbers are in the path of some task."""
        inside = {key: p.name for p in self.blueprint.hidden for key in p.keys()}
        used = self.empty_masks([*inside, *(link.name for link in self.inner_links())])
        for units in map(self.units_of, self.paths):
            for key, layer in inside.items():
                used[key][units[layer]] = True
            for link in self.inner_links():
                sources = units.get(link.source, torch.arange(self.blueprint.input.size, device=self.device))
                used[link.name][units[link.target][:, None], sources] = True
        return used

    def subnetwork(self, params: Params, task: int) -> dict[str, Tensor]:
        """The path as a smaller network, without the units outside of it."""
        units = self.units_of(self.paths[task]) if task < self.tasks_learned else self.turns[self.turn]
        return cut(self.blueprint, params, units)

    def forward(self, batch: Batch) -> Tensor:
        units = self.turns[self.turn]
        model = self.task_params(self.tasks_learned) | cut(self.blueprint, self.uses_batch_stats, units)
        output = self.blueprint.forward(model, batch.x)
        for layer in self.blueprint.hidden:  # batch norm updated a copy of the path's statistics
            for key in (key for key, value in layer.keys().items() if not value.trained):
                self.params[key].data.index_copy_(0, units[layer.name], model[key])
        return output

    def end_task(self, task: Task) -> None:
        self.paths, self.turns = torch.stack([*self.paths, self.best]), ()
        super().end_task(task)
        learned, self.params = self.params, {}
        self.build()
        for name, used in self.used().items():
            value = torch.where(used, learned[name].data, self.params[name].data)
            self.set_param(name, value, learned[name].requires_grad)
        for name in self.output_names():
            self.set_param(name, learned[name].data)


def next_generation(population: Tensor, fitness: Tensor, limits: Tensor, rng: Generator) -> Tensor:
    """Compare paths in pairs and replace the less fit one by a mutated copy of the other (in a draw, the second).
    Each of a path's n numbers changes with a probability of 1/n, by -2 to 2, modulo the number of modules."""
    population = population.clone()
    order = torch.randperm(len(population), generator=rng).tolist()
    for pair in zip(order[::2], order[1::2], strict=False):
        winner, loser = sorted(pair, key=lambda path: -float(fitness[path]))
        genes = population[winner].long()
        mutates = torch.rand(genes.shape, generator=rng) < 1 / genes.numel()
        shift = torch.randint(-2, 3, genes.shape, generator=rng)
        population[loser] = ((genes + mutates * shift) % limits).to(population.dtype)
    return population
