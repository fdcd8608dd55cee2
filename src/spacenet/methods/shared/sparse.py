"""The base of SpaceNet and its variants: each task is learned in a compact part of a network of fixed size.

The paper's Algorithm 1 is this file read from top to bottom: allocate → open the workspace → train (and rewire) →
commit → reserve → pack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Samples, Stream, Task
from spacenet.errors import SpaceFull
from spacenet.methods.base import Batch, Optimizer, Params, kept, map_batches
from spacenet.methods.shared import removal
from spacenet.methods.shared.balance import Balance
from spacenet.methods.shared.packed import BALANCE, PackedMethod
from spacenet.methods.shared.refining import can_refine, refine_outputs
from spacenet.methods.shared.rotations import (
    check_rotatable,
    is_rotatable,
    make_rotated_head,
    rotate_batch,
    rotate_targets,
)
from spacenet.methods.shared.sparse_settings import EXPECTED_TASKS, AdaptiveSettings, SparseSettings
from spacenet.space.allocation import LIMIT, allocate, check, select, tasks_left, tasks_that_fit
from spacenet.space.blueprint import CPU, Layer
from spacenet.space.budget import ResolvedBudget, TaskBudget, default_budget
from spacenet.space.expansion import Plan
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.operations import add_phantoms, cross_entropy
from spacenet.space.pack import Units
from spacenet.space.rewiring import reserve
from spacenet.space.workspace import Workspace
from spacenet.utils.tensors import in_section, section

MAX_GROWTH = 1000
"""How often units are added before a task at most. Far more than any task needs."""
UNUSED_AFTER = 4
"""After this many times, units without connections are selected first: among them all positions are open."""
MANY_CLASSES = 100
"""Beyond this many classes of a task, the learning rate of SGD grows with them."""
PHANTOMS = 8
HEAD = "rotated_head"
FEATURES = "features"
"""The classifier's inputs of a batch of images in four orientations, in `Batch.saved`."""


class SparseMethod(PackedMethod):
    """Learns each task with sparse connections of its own, which stay where they were allocated."""

    strategy = "Architectural"
    uses_weights = divides_network = True
    settings: SparseSettings
    training_space: ClassVar = {"training.learning_rate": Uniform(0.002, 0.2, log=True)}
    workspace: Workspace | None = None
    rotated_head: nn.Linear | None = None
    precomputed: Params
    first_output: int
    phantom_weight: float
    saved_task: dict[str, Tensor] = kept("task", dict, on_cpu=True)
    """What `load_state` found of an unfinished task, for `resume_task`."""
    keeps_classifiers = False
    """Whether earlier tasks' classifiers stay connected while a task is trained. In the paper they do not."""

    refines: ClassVar[bool] = False
    """Whether more samples of known classes may train the connections into their outputs, and nothing else."""
    own_width = False
    """Whether initial weights suit the units that a task selects, instead of the whole network as in the paper."""

    @property
    def reads_earlier(self) -> bool:
        """Whether a task's connections may come from units that earlier tasks reserved."""
        return False

    def setup(self) -> None:
        super().setup()
        settings, blueprint = self.settings, self.blueprint
        self.ledger = Ledger(blueprint)
        self.ledger.initialize(self.rng("units"))
        self.phantom_classes = PHANTOMS if settings.phantom_classes is None else settings.phantom_classes
        self.plan = Plan.parse(settings.expand)
        self.plan.check_layers(blueprint)
        tasks = settings.expected_tasks or EXPECTED_TASKS
        default = self.default_budget(tasks)
        sized_for, classes = settings.sized_for or (tasks, 0)
        budget = TaskBudget(
            settings.selected or default.selected,
            settings.reserved or default.reserved,
            settings.connections or default.connections,
            classes,
        )
        first = settings.first_selected, settings.first_reserved, settings.first_connections
        apart = any(first)  # a first task of its own size keeps it
        before = (first[1] or budget.reserved) if apart else (0,)
        self.task_budget = budget.scale(blueprint, max(1, sized_for - apart), max(1, tasks - apart), before)
        """What a task selects and reserves, and its connections: as given, or following from the network's size."""
        of_first = budget if apart else self.task_budget
        self.first_task_budget = TaskBudget(
            first[0] or of_first.selected, first[1] or of_first.reserved, first[2] or of_first.connections, classes
        )
        self.balance = Balance(settings.balance)

    def default_budget(self, tasks: int) -> TaskBudget:
        """What a task gets if this many are expected, where the settings do not say it."""
        return default_budget(self.blueprint, tasks, self.settings.selected)

    def budget(self, classes: int, ledger: Ledger | None = None, first: bool | None = None) -> ResolvedBudget:
        """What a task with this number of classes requires; by default, a task in an empty network is the first."""
        held = ledger or self.ledger
        first = not any(map(len, held.connections.values())) if first is None else first
        planned = self.plan.planned_sizes(held, self.tasks_learned)
        return (self.first_task_budget if first else self.task_budget).resolve(held, classes, planned)

    def space_left(self, classes: int, most: int = LIMIT) -> int:
        """How many more tasks with this number of classes fit without growing, at most `most`."""
        rng, unused_first = self.rng("forecast", self.tasks_learned), self.settings.unused_first
        return tasks_left(
            self.ledger, lambda held: self.budget(classes, held), classes, rng, unused_first, self.reads_earlier, most
        )

    def check(self, stream: Stream) -> list[str]:
        self.plan.check_tasks(len(stream))
        for task in stream:
            check(self.ledger, self.budget(len(task.classes), first=task.index == 0), len(task.classes))
        self.check_inputs(stream.input_shape)
        fit = self._tasks_that_fit(len(stream[0].classes))
        if fit is None or fit >= len(stream) or self.plan.auto or any(task <= fit for task in self.plan.before):
            return []
        return [f"the space holds {fit} of the stream's {len(stream)} tasks with these settings"]

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        if self.settings.rotations in ("first", "all"):
            check_rotatable(shape)

    def _tasks_that_fit(self, classes: int) -> int | None:
        """How many tasks there are units for; None where units never run out."""
        if self.first_task_budget != self.task_budget:
            return self.space_left(classes)
        budget = self.budget(classes)
        if 0 in self.task_budget.selected:  # all free units, as long as there are enough to reserve
            budget = replace(budget, selected={name: max(1, count) for name, count in budget.reserved.items()})
        return tasks_that_fit(self.ledger, budget)

    def begin_task(self, task: Task, data: Samples) -> None:
        self.plan.carry_out(self.ledger, task.index)
        selection, new = self.allocate(task)  # first, because it may raise SpaceFull
        super().begin_task(task, data)
        self.ledger.grow(self.blueprint.output.name, len(task.classes))
        self.open_workspace(Workspace(self.ledger, selection, new, **self._workspace_options(task, data)), task, data)

    def allocate(self, task: Task) -> tuple[Units, dict[str, Connections]]:
        """Algorithm 2: the task's units and connections. The ledger does not hold them before the task ends."""
        budget = self.budget(len(task.classes))
        for added in range(MAX_GROWTH):
            try:
                return self._allocate(task, budget, unused_first=self.settings.unused_first or added >= UNUSED_AFTER)
            except SpaceFull as full:
                if not self.plan.auto:
                    raise
                # As many units as a task reserves: this makes up for what the task before took.
                self.ledger.grow(full.layer, max(1, budget.reserved[full.layer]))
                # Where all free units are selected, the new ones are too; the number of connections stays.
                budget = replace(budget, selected=self.budget(len(task.classes)).selected)
                last = full
        remedy = f"Units were added {MAX_GROWTH} times. Fewer connections per task, or more selected units, make room."
        raise SpaceFull(last.message, last.layer, cli=remedy, python=remedy)

    def _allocate(
        self, task: Task, budget: ResolvedBudget, *, unused_first: bool
    ) -> tuple[Units, dict[str, Connections]]:
        rng = self.rng("allocate", task.index)
        selection = select(self.ledger, budget, torch.tensor(task.classes), rng, unused_first)
        new = allocate(self.ledger, budget, selection, task.index, rng, self.own_width, self.reads_earlier)
        return selection, new

    def _workspace_options(self, task: Task, data: Samples) -> dict[str, Any]:
        """The arguments of a workspace besides the task's units and connections."""
        return {
            "outputs": torch.arange(0 if self.keeps_classifiers else task.classes.start, task.classes.stop),
            "masked_dense": self.settings.masked_dense,
            # The activations of constant feature maps for all samples would not fit into memory.
            "fixed": not data.augmented
            and not self.blueprint.convolves
            and not self._rotates(task.index, tuple(data.x.shape[1:])),
            "device": self.device,
        }

    def _rotates(self, task: int, shape: tuple[int, ...]) -> bool:
        """Whether the task with this index learns samples of this shape in four orientations."""
        kind = self.settings.rotations
        return kind == "all" or (kind == "first" and task == 0) or (kind == "auto" and is_rotatable(shape))

    def open_workspace(self, workspace: Workspace, task: Task, data: Samples) -> None:
        """Start training in a workspace. Called when a task begins, and when it is resumed."""
        self.workspace, self.precomputed = workspace, workspace.frozen_inputs.precompute(data.x)
        outputs = workspace.units[self.blueprint.output.name]
        self.first_output = int(outputs[0])
        self.phantom_weight = self._weigh_phantoms()
        if self._rotates(task.index, tuple(data.x.shape[1:])):
            check_rotatable(tuple(data.x.shape[1:]))
            rng = self.rng("rotations", task.index)
            sources = sum(workspace.sizes[link.source] * link.each[1] for link in self.blueprint.classifiers)
            self.rotated_head = make_rotated_head(sources, len(outputs), rng, self.device)

    def _weigh_phantoms(self) -> float:
        """How many classes of score 0 weigh as much as all phantom classes."""
        biases = self.ledger.units.get(f"{self.blueprint.output.name}.bias")
        if self.settings.phantom_scores == "zero" or biases is None:
            return self.phantom_classes
        earlier = biases[: self.first_output].double()  # none where earlier classifiers stay connected
        return float(earlier.exp().sum()) + max(0, self.phantom_classes - len(earlier))

    def active_workspace(self) -> Workspace:
        assert self.workspace is not None, "no task is being learned"
        return self.workspace

    def named_parameters(self) -> dict[str, nn.Parameter]:
        head = self.rotated_head.named_parameters(HEAD) if self.rotated_head else ()
        return {**self.active_workspace().named_parameters(), **dict(head)}

    def statistics(self) -> list[Tensor]:
        return list(self.active_workspace().statistics.values())

    def rate_factor(self, task: Task) -> float:
        """Each output learns from the samples of its class: with very many classes, rarely. At the usual learning rate
        a task of 1000 classes stays at chance."""
        return max(1.0, len(task.classes) / MANY_CLASSES)

    def forward(self, batch: Batch) -> Tensor:
        if self.rotated_head is None:
            precomputed = {name: inputs.index_select(0, batch.rows) for name, inputs in self.precomputed.items()}
            return self.active_workspace()(batch.x, precomputed)
        entering: dict[str, Tensor] = {}
        upright = self.active_workspace()(rotate_batch(batch.x), {}, hook=entering.__setitem__)
        batch.saved[FEATURES] = features = self.blueprint.features(entering)
        return torch.cat([upright, self.rotated_head(features)], 1)

    def target(self, batch: Batch) -> Tensor:
        target = batch.y - self.first_output
        if self.rotated_head is None:
            return target
        return rotate_targets(target, len(self.active_workspace().units[self.blueprint.output.name]))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Cross-entropy over the task's outputs and the phantom classes."""
        # Without autograd where the workspace does without it too, unless a subclass adds something to this loss.
        plain = not self.settings.label_smoothing and batch.weight is None
        by_hand = output.is_leaf and plain and type(self).loss is SparseMethod.loss
        scores = output.detach() if by_hand else output
        scores = add_phantoms(scores, self.phantom_weight)
        if not by_hand:
            target, smoothing = self.target(batch), self.settings.label_smoothing
            if batch.weight is None:
                return F.cross_entropy(scores, target, label_smoothing=smoothing)
            weight = batch.weight.repeat(len(scores) // len(batch.y))  # each image may come in four orientations
            return (F.cross_entropy(scores, target, label_smoothing=smoothing, reduction="none") * weight).mean()
        loss, gradient = cross_entropy(scores, self.target(batch))
        output.grad = gradient[:, : output.shape[1]]
        return loss

    def backward(self, loss: Tensor) -> None:
        self.active_workspace().backward(loss)

    def step(self, optimizer: Optimizer) -> None:
        self.active_workspace().step(optimizer)

    def end_task(self, task: Task) -> None:
        workspace = self.active_workspace()
        workspace.commit(task.index)
        importance = {p.name: workspace.importance(p.name) for p in self.blueprint.hidden}
        budget = self.budget(len(task.classes), first=task.index == 0)
        reserve(self.ledger, task.index, workspace.selection, importance, budget.reserved)
        self.workspace, self.rotated_head, self.precomputed = None, None, {}
        super().end_task(task)
        if self.settings.balance == "logits":
            first, stop = task.classes.start, task.classes.stop
            scores = map_batches(self.pack, task.train.x, self.device)[:, first:stop]
            self.balance.record(scores, task.train.y.cpu() - first)

    # More samples of known classes

    @property
    def can_update(self) -> bool:
        return type(self).refines and self.settings.balance == "none" and can_refine(self.ledger)

    @property
    def why_no_update(self) -> str:
        return "what is kept of them has no counts"

    @property
    def grows(self) -> bool:
        return self.plan.auto

    @property
    def relearns_known(self) -> bool:
        return self.settings.known_classes == "task"

    def update(self, samples: Samples, training: TrainingConfig) -> None:
        refine_outputs(self.ledger, samples.to(CPU), training, self.rng("refine", self.tasks_learned))
        self.invalidate()

    def state(self) -> dict[str, Tensor]:
        current = self.workspace.state(self.tasks_learned) if self.workspace else {}
        head = in_section(HEAD, self.rotated_head.state_dict()) if self.rotated_head else {}
        return super().state() | in_section("task", current | head)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.workspace, self.rotated_head, self.precomputed = None, None, {}

    def resume_task(self, task: Task, data: Samples) -> None:
        super().resume_task(task, data)
        saved, self.saved_task = self.saved_task, {}
        self.open_workspace(Workspace.reopen(self.ledger, saved, **self._workspace_options(task, data)), task, data)
        if self.rotated_head is not None:
            self.rotated_head.load_state_dict(section(saved, HEAD))

    # Removing classes, see `methods.shared.removal`

    def remove_classes(self, outputs: Tensor) -> None:
        removal.remove_classes(self, outputs)

    def compact(self) -> None:
        removal.compact(self)

    @property
    def reads_first_task(self) -> bool:
        """Whether what is kept of all classes was computed on the network of the first task."""
        return False

    @property
    def tasks_described(self) -> Sequence[int]:
        """Tasks on whose networks statistics of classes were computed."""
        return [0] if self.reads_first_task else []

    def units_read(self) -> Units:
        """Units that are read by something else than connections."""
        return {}

    def least_size(self, layer: Layer) -> int:
        """How many units of a layer stay, whether they are used or not."""
        return layer.size

    def move_units(self, places: Mapping[str, Tensor]) -> None:
        """Follow units that have got other numbers: for each layer the new number of each one."""

    def keep_classes(self, kept: Tensor) -> None:
        """Remove what is kept besides the network of all classes but these, given by number."""

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        """The same for what is kept besides the network, which the method has already."""
        self.balance.check(section(state, BALANCE), len(self.classes))
        unknown = sorted(name for name in state if not name.startswith(BALANCE + "/"))
        if unknown:
            raise ValueError(f"unknown content ({', '.join(unknown[:3])})")


class AdaptiveMethod(SparseMethod):
    """Adaptive sparse training: after every epoch but a task's last, connections move to more important places."""

    settings: AdaptiveSettings

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if not last and self.settings.rewire_fraction:
            self.active_workspace().rewire(self.settings.rewire_fraction, optimizer)

    def epoch_metrics(self) -> dict[str, float]:
        """The fraction of the task's connections that have moved since they were allocated."""
        return {"moved": self.active_workspace().moved_fraction()}
