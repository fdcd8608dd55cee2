"""What SpaceNet and its variants share: each task learns in a compact part of a network of fixed size.

The paper's Algorithm 1 is this file read from top to bottom: allocate → open the workspace → train (and rewire) →
commit → reserve → pack.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from spacenet.config.ranges import Choice, Range, Uniform
from spacenet.data.stream import Samples, Stream, Task
from spacenet.errors import SpaceFull
from spacenet.methods.base import Batch, LayerUsage, Method, MethodSettings, map_batches
from spacenet.methods.shared.balance import Balance
from spacenet.methods.shared.rotations import TurnedOutputs, check_turns, turned, turned_target
from spacenet.methods.shared.sparse_settings import AdaptiveSettings, SparseSettings
from spacenet.space.allocation import allocate, check, select, tasks_that_fit
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.space.budget import ResolvedBudget, resolve
from spacenet.space.cut import Units
from spacenet.space.expansion import Plan
from spacenet.space.forecast import tasks_left
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import Pack, pack
from spacenet.space.predictor import Predictor
from spacenet.space.reservation import reserve
from spacenet.space.sizing import TaskBudget, default_budget
from spacenet.space.workspace import Workspace
from spacenet.utils.seeding import generator
from spacenet.utils.tensors import in_section, section

MOST_GROWTH = 1000
"""So often units are added before a task; whatever is asked for has found its place long before."""


class SparseMethod(Method):
    """Learns each task with its own sparse connections; they stay where they were allocated."""

    strategy = "Architectural"
    Settings = SparseSettings
    settings: SparseSettings
    search_space: ClassVar[Mapping[str, Range]] = {
        "training.learning_rate": Uniform(0.002, 0.2, log=True),
        "method.phantom_classes": Uniform(0, 20, integer=True),
        "method.label_smoothing": Choice((0.0, 0.1, 0.2)),
    }
    keeps_classifiers = False
    """Whether earlier tasks' classifiers stay connected while a task trains. The paper sets them aside."""

    @property
    def needs_old_data(self) -> bool:
        """Whether it can learn on only where all earlier tasks' data is at hand."""
        return False

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.ledger = Ledger(blueprint)
        self.plan = Plan.parse(self.settings.expand)
        given = self.settings
        fitting = default_budget(blueprint, given.expected_tasks, given.selected)
        self.sizes = TaskBudget(
            given.selected or fitting.selected,
            given.reserved or fitting.reserved,
            given.connections or fitting.connections,
        )
        """What a task selects and reserves, and its connections; as given, or as it suits the network."""
        self.first_task_budget = TaskBudget(
            given.first_selected or self.sizes.selected,
            given.first_reserved or self.sizes.reserved,
            given.first_connections or self.sizes.connections,
        )
        self.balance = Balance(given.balance)
        self.workspace: Workspace | None = None
        self.turned: TurnedOutputs | None = None
        self.precomputed: Mapping[str, Tensor] = {}
        self.first_output = 0
        self._pack: Pack | None = None
        self._predictor: Predictor | None = None

    def budget(self, classes: int, ledger: Ledger | None = None, first: bool | None = None) -> ResolvedBudget:
        """What a task of so many classes asks of the space; unless it is said, the first is the one in an empty one."""
        held = ledger or self.ledger
        first = not any(map(len, held.connections.values())) if first is None else first
        return resolve(held, *(self.first_task_budget if first else self.sizes), classes)

    def space_left(self, classes: int) -> int:
        """How many more tasks of so many classes fit without growing, at most `forecast.LIMIT`."""
        rng = generator(self.seed, "forecast", self.tasks_learned)
        return tasks_left(
            self.ledger,
            lambda ledger: self.budget(classes, ledger),
            classes,
            self.tasks_learned,
            rng,
            self.settings.unused_first,
        )

    def check(self, stream: Stream) -> list[str]:
        self.plan.check(self.ledger, len(stream))
        for task in stream:
            check(self.ledger, self.budget(len(task.classes), first=task.index == 0), len(task.classes))
        self.check_inputs(stream.input_shape)
        fit = self._fitting(len(stream[0].classes))
        grows = self.plan.auto or any(task <= fit for task in self.plan.before) if fit is not None else False
        if fit is not None and fit < len(stream) and not grows:
            return [f"the space holds {fit} of the stream's {len(stream)} tasks with these settings"]
        return []

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        """Raise `SettingsError` if the settings cannot work on samples of this shape."""
        if self.settings.rotations != "none":
            check_turns(shape)

    def _fitting(self, classes: int) -> int | None:
        """How many tasks the units allow; None where units never run out."""
        if self.first_task_budget != self.sizes:
            return self.space_left(classes)
        budget = self.budget(classes)
        if 0 in self.sizes.selected:  # whatever is free, as long as there is enough to reserve
            budget = replace(budget, selected={name: max(1, count) for name, count in budget.reserved.items()})
        return tasks_that_fit(self.ledger, budget)

    def begin_task(self, task: Task, data: Samples) -> None:
        self.plan.carry_out(self.ledger, task.index)
        selection, new = self.allocation(task)
        self.ledger.grow(self.blueprint.output.name, len(task.classes))
        self._enter(Workspace(self.ledger, selection, new, **self._form(task, data)), task, data)

    def allocation(self, task: Task) -> tuple[Units, dict[str, Connections]]:
        """Algorithm 2. Nothing is entered into the ledger before all of it fits."""
        budget = self.budget(len(task.classes))
        for _ in range(MOST_GROWTH):
            try:
                return self._lay_out(task, budget)
            except SpaceFull as full:
                if not self.plan.auto:
                    raise
                # As many units as a task makes its own: what the task before took away comes back.
                self.ledger.grow(full.layer, max(1, budget.reserved[full.layer]))
                # Where all free units are selected, the new ones are too; connections must not become more with them.
                budget = replace(budget, selected=self.budget(len(task.classes)).selected)
        return self._lay_out(task, budget)

    def _lay_out(self, task: Task, budget: ResolvedBudget) -> tuple[Units, dict[str, Connections]]:
        rng = generator(self.seed, "allocate", task.index)
        selection = select(self.ledger, budget, torch.tensor(task.classes), rng, self.settings.unused_first)
        return selection, allocate(self.ledger, budget, selection, task.index, rng)

    def _form(self, task: Task, data: Samples) -> dict[str, Any]:
        """What a workspace needs to know besides the task's units and connections."""
        return {
            "outputs": torch.arange(0 if self.keeps_classifiers else task.classes.start, task.classes.stop),
            "masked_dense": self.settings.masked_dense,
            # The activations of constant feature maps for all samples would fill the memory.
            "fixed": not data.augmented and not self.blueprint.convolves and not self._turns(task),
            "device": self.device,
        }

    def _turns(self, task: Task) -> bool:
        return self.settings.rotations == "all" or (self.settings.rotations == "first" and task.index == 0)

    def _enter(self, workspace: Workspace, task: Task, data: Samples) -> None:
        self.workspace, self.precomputed = workspace, workspace.frozen_inputs.precomputed(data.x)
        outputs = workspace.units[self.blueprint.output.name]
        self.first_output = int(outputs[0])
        if self._turns(task):
            check_turns(tuple(data.x.shape[1:]))
            rng = generator(self.seed, "rotations", task.index)
            sources = workspace.training[self.blueprint.links[-1].name].shape[1]
            self.turned = TurnedOutputs(sources, len(outputs), rng, self.device)

    def parameters(self) -> list[nn.Parameter]:
        return [*self._at_work().parameters(), *(self.turned.parameters() if self.turned else ())]

    def statistics(self) -> list[Tensor]:
        return [each for part in self._at_work().layers.values() for each in part.statistics.values()]

    def forward(self, batch: Batch) -> Tensor:
        if self.turned is not None:
            return self._forward_turned(turned(batch.x), self.turned)
        precomputed = {name: precomputed.index_select(0, batch.rows) for name, precomputed in self.precomputed.items()}
        return self._at_work()(batch.x, precomputed)

    def _forward_turned(self, x: Tensor, outputs: TurnedOutputs) -> Tensor:
        last: dict[str, Tensor] = {}
        upright = self._at_work()(x, {}, hook=last.__setitem__)
        return torch.cat([upright, outputs(last[self.blueprint.links[-1].name])], 1)

    def target(self, batch: Batch) -> Tensor:
        target = batch.y - self.first_output
        if self.turned is None:
            return target
        return turned_target(target, len(self._at_work().units[self.blueprint.output.name]))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Cross-entropy over the task's outputs and the silent ones: n scores of 0 weigh as much as one of log n."""
        if self.settings.phantom_classes:
            output = F.pad(output, (0, 1), value=math.log(self.settings.phantom_classes))
        return F.cross_entropy(output, self.target(batch), label_smoothing=self.settings.label_smoothing)

    def step(self, optimizer: Optimizer) -> None:
        self._at_work().step(optimizer)

    def end_task(self, task: Task) -> None:
        workspace = self._at_work()
        workspace.commit(task.index)
        importance = {p.name: workspace.importance(p.name) for p in self.blueprint.hidden}
        budget = self.budget(len(task.classes), first=task.index == 0)
        reserve(self.ledger, task.index, workspace.selection, importance, budget.reserved)
        self.workspace, self.turned, self.precomputed = None, None, {}
        self._changed()
        super().end_task(task)
        if self.settings.balance == "logits":
            scores = map_batches(self.packed(), task.train.x, self.device)
            self.balance.note(
                scores[:, task.classes.start : task.classes.stop], task.train.y.cpu() - task.classes.start
            )

    def _changed(self) -> None:
        """What was packed is no longer what the ledger holds."""
        self._pack, self._predictor = None, None

    def packed(self) -> Pack:
        """The network, ready to compute."""
        if self._pack is None:
            self._pack = pack(self.ledger, self.device)
        return self._pack

    def predictor(self) -> Predictor:
        """All that is needed to predict."""
        network = self.packed()
        classifier = network.values[self.blueprint.links[-1].name]
        tasks = self.classes[: self.tasks_learned]
        return self.balance.applied(Predictor(network.forward, network.values), classifier, tasks)

    def predict(self, x: Tensor) -> Tensor:
        if self._predictor is None:
            self._predictor = self.predictor()
        return self._predictor(x)

    def activations(self, x: Tensor) -> dict[str, Tensor]:
        packed, sources = self.packed(), {link.name: link.source for link in self.blueprint.links}
        found: dict[str, Tensor] = {}

        def hook(link: str, h: Tensor) -> None:
            name = sources[link]
            if name != self.blueprint.input.name and name not in found:
                each = h.reshape(*h.shape[:2], -1).mean(2).cpu()  # a feature map answers with its mean
                units = packed.units[name]
                found[name] = torch.zeros(len(h), self.ledger.size(name)).index_copy_(1, units, each[:, : len(units)])

        with torch.no_grad():
            packed.forward(packed.values, x, hook)
        return found

    def layers(self) -> list[LayerUsage]:
        layers = []
        for layer in self.blueprint.layers[1:]:
            name, used = layer.name, self.ledger.used(layer.name)
            into = [self.ledger.connections[link.name] for link in self.blueprint.links if link.target == name]
            layers.append(
                LayerUsage(
                    name,
                    units=len(used),
                    used=int(used.sum()),
                    reserved=int((self.ledger.state[name] != FREE).sum()),
                    unused=int((~used).sum()),
                    connections=sum(len(connections) for connections in into),
                )
            )
        return layers

    def network(self) -> dict[str, Tensor]:
        return self.ledger.tensors()

    def extra(self) -> dict[str, Tensor]:
        return in_section("balance", self.balance.tensors())

    def check_extra(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        self.balance.check(section(extra, "balance"), len(self.classes))
        rest = {name: tensor for name, tensor in extra.items() if not name.startswith("balance/")}
        super().check_extra(rest, input_shape)

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        self.ledger.load(tensors)
        self.balance.load(section(tensors, "balance"))
        self._changed()

    def task_state(self) -> dict[str, Tensor]:
        return {**self._at_work().tensors(self.tasks_learned), **(self.turned.tensors() if self.turned else {})}

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._enter(Workspace.reopened(self.ledger, tensors, **self._form(task, data)), task, data)
        if self.turned is not None:
            self.turned.load(tensors)

    def _at_work(self) -> Workspace:
        assert self.workspace is not None, "no task is being learned"
        return self.workspace


class AdaptiveMethod(SparseMethod):
    """Adaptive sparse training: after every epoch but a task's last, connections move to where they matter."""

    Settings = AdaptiveSettings
    settings: AdaptiveSettings
    search_space: ClassVar[Mapping[str, Range]] = {
        **SparseMethod.search_space,
        "method.rewire_fraction": Uniform(0.1, 0.7),
    }

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if last:
            return
        workspace = self._at_work()
        for name, moved in workspace.rewire(self.settings.rewire_fraction).items():
            value = workspace.training[name].value
            for history in optimizer.state.get(value, {}).values():  # a grown connection must not inherit momentum
                if torch.is_tensor(history) and history.shape == value.shape:
                    history[moved] = 0.0

    def epoch_notes(self) -> dict[str, float]:
        """How many of the task's connections are no longer where they were laid at first, as a part of all."""
        return {"moved": self._at_work().moved()}
