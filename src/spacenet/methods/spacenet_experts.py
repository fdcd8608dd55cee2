"""SpaceNet with an expert for each task: a dense part of the space that shares nothing with other tasks.

A task gets units of its own and all connections between them, so a step costs the same in the last task as in the
first, and what one task has learned no other one can disturb. Square images are learned in four orientations, each
class in each orientation as a class of its own, and these outputs are kept: a class is scored by the mean of its score
in each orientation. Experts never see each other's classes, but their raw scores are comparable; statistics of each
class on the first expert's features help to decide between tasks. In a convolutional network these are the inputs of
the last convolution but one, which tell unknown classes apart better than what the last one makes of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, Params, Samples, Task, kept, map_batches
from spacenet.methods.density.densities import ClassMemory, Densities, scores
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings, extract_features
from spacenet.methods.shared.contrast import contrastive_loss, make_projection
from spacenet.methods.shared.places import drop_places
from spacenet.methods.shared.rotations import ORIENTATIONS
from spacenet.methods.shared.sparse import FEATURES, AdaptiveMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings, Rotations
from spacenet.space.budget import TaskBudget, dense_budget
from spacenet.space.pack import Pack, Units, pack, packed_numbers, packed_units
from spacenet.space.workspace import Workspace
from spacenet.utils.tensors import check_finite, check_sections, check_shapes, in_section, section

PROJECTION, DENSITY, HEADS, BIAS = "projection", "density", "rotated", "bias"


@dataclass(frozen=True)
class ExpertSettings(ClassStatisticsSettings, AdaptiveSettings):
    """How large an expert is, how it is trained, and what is kept of each class."""

    components: Annotated[int, Ge(1), Le(1000)] | None = None
    """Gaussians per class. Default: 1."""
    max_weights: Annotated[int, Ge(1)] | None = None
    """Weights that the experts of all expected tasks may have together; each gets the same part. Default: as many as
    fit into the network."""
    reads: Literal["own", "all"] = "own"
    """Units that an expert's connections come from: its own, or also those of all earlier experts, which stay as they
    are. With all, an expert has more weights and a step takes longer from task to task."""
    rotations: Rotations = "auto"
    """Learn square images in four orientations, with each class in each orientation as a class of its own: in the first
    task, or in all; auto is all for square images, otherwise none. Predictions are the mean over the four. A step takes
    four times as long."""
    contrast: Annotated[float, Ge(0), Le(1000), Uniform(0.0, 2.0)] = 0.0
    """Factor of the supervised contrastive loss, which is added to the cross-entropy where images are rotated."""
    statistics_weight: Annotated[float, Ge(0), Le(1e6)] = 0.0
    """Factor of the log-densities of classes, given the first expert's features, that are added to the scores; with 0
    no statistics are kept."""
    mirror: bool = False
    """Compute statistics on the mean of the features of an image and its mirror image, in a convolutional network. For
    images that are flipped in training too."""
    phantom_classes: Annotated[int, Ge(0)] | None = 0
    """Classes of other tasks that take part in the loss. They have no connections during the task: their score is 0."""
    rewire_fraction: Annotated[float, Ge(0), Le(1)] = 0.0
    """Fraction of the task's connections that is dropped and grown elsewhere after each epoch. An expert has all
    connections between its units, unless `connections` says otherwise: then there is nowhere else to grow."""

    def validate(self) -> None:
        super().validate()
        if self.balance != "none":
            raise SettingsError("experts are compared by their raw scores; it must be none", setting="balance")


class SpaceNetExperts(AdaptiveMethod):
    """SpaceNet with a dense expert for each task, which shares nothing with the others. Keeps no samples."""

    name = "spacenet-experts"
    reference = (
        "SpaceNet; for rotated classes, Lee, Hwang, Shin: Self-supervised Label Augmentation via Input "
        "Transformations. ICML, 2020; for the contrastive loss, Khosla et al.: Supervised Contrastive Learning. "
        "NeurIPS, 2020"
    )
    settings_from = "Searched on held-out training data."
    settings: ExpertSettings
    heads: list[dict[str, Tensor]] = kept(HEADS, list, on_cpu=True)
    """For each task its outputs for rotated images: their weights by classifier link, (outputs, units, features), with
    the numbers of these units; and their biases."""
    densities: Densities = kept(DENSITY, on_cpu=True)
    projection: nn.Sequential | None = None
    own_width = packs_tasks_apart = True

    def setup(self) -> None:
        super().setup()
        chosen = replace(self.settings, components=self.settings.components or 1)
        self.densities = chosen.build_densities(whiten=True)

    def default_budget(self, tasks: int) -> TaskBudget:
        return dense_budget(self.blueprint, tasks, self.settings.max_weights, self.reads_earlier)

    @property
    def reads_earlier(self) -> bool:
        return self.settings.reads == "all"

    # Training

    def open_workspace(self, workspace: Workspace, task: Task, data: Samples) -> None:
        super().open_workspace(workspace, task, data)
        if self.settings.contrast and self.rotated_head is not None:
            rng = self.rng(PROJECTION, task.index)
            self.projection = make_projection(self.rotated_head.in_features, rng, self.device)

    def named_parameters(self) -> dict[str, nn.Parameter]:
        projection = self.projection.named_parameters(PROJECTION) if self.projection else ()
        return {**super().named_parameters(), **dict(projection)}

    def forward(self, batch: Batch) -> Tensor:
        output = super().forward(batch)
        if self.projection is not None:
            batch.saved[PROJECTION] = self.projection(batch.saved[FEATURES])
        return output

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        loss = super().loss(output, batch)
        if self.projection is None:
            return loss
        return loss + self.settings.contrast * contrastive_loss(batch.saved[PROJECTION], self.target(batch))

    def end_task(self, task: Task) -> None:
        self.heads.append(self._keep_head())
        super().end_task(task)
        self.projection = None
        if self.settings.statistics_weight:
            h = map_batches(self.represent, task.train.x, self.device)
            rng = self.rng(class_statistics.SEED, task.index)
            self.densities.add(h, task.train.y.cpu(), task.classes, rng, task.train.weight)

    def _keep_head(self) -> dict[str, Tensor]:
        """The outputs for rotated images as `heads` holds them; none if the task had none."""
        if self.rotated_head is None:
            return {}
        workspace, weight = self.active_workspace(), self.rotated_head.weight.detach().cpu()
        links = self.blueprint.classifiers
        parts = weight.split([workspace.sizes[link.source] * link.each[1] for link in links], 1)
        head = {BIAS: self.rotated_head.bias.detach().cpu().clone()}
        for link, part in zip(links, parts, strict=True):
            units = workspace.units[link.source]
            by_unit = part.unflatten(1, (workspace.sizes[link.source], link.each[1]))
            head |= {f"units/{link.name}": units.float(), f"weight/{link.name}": by_unit[:, : len(units)].clone()}
        return head

    # Prediction

    @cached_property
    def experts(self) -> list[Pack]:
        """The network of each task that has classes alone, with its outputs for rotated images."""
        return [self._pack_expert(task) for task, own in enumerate(self.classes[: self.tasks_learned]) if own]

    def _pack_expert(self, task: int) -> Pack:
        placed, head, ends = self.places.tasks if self.places else self.classes, self.heads[task], self._ends(task)
        network = pack(self.placed_ledger, self.device, ends=ends, more=section(self.places.units, f"{task}"))
        expert = self._add_head(network, self._place_head(head, task), ends) if head else network
        missing = len(placed[task]) > len(self.classes[task])
        return drop_places(expert, self.places.kept_of(task), self.device) if missing else expert

    def _ends(self, task: int) -> Units:
        """What leads to a task's scores: its outputs, and what its outputs for rotated images read."""
        head, own = self.heads[task], (self.places.tasks if self.places else self.classes)[task]
        ends = {self.blueprint.output.name: torch.arange(own.start, own.stop)}
        read = {link.source: head[f"units/{link.name}"].long() for link in self.blueprint.classifiers if head}
        return ends | read

    def _place_head(self, head: dict[str, Tensor], task: int) -> dict[str, Tensor]:
        """A task's outputs for rotated images, one for each of its places."""
        own = self.classes[task]
        return _keep_outputs(head, own, self.places.fill_of(task)) if self.places else head

    def _add_head(self, network: Pack, head: dict[str, Tensor], ends: Units) -> Pack:
        columns = []
        for link in self.blueprint.classifiers:
            weight = head[f"weight/{link.name}"]
            rows = torch.searchsorted(network.units[link.source], ends[link.source])
            aligned = weight.new_zeros(len(weight), network.params[link.name].shape[1], link.each[1])
            columns.append(aligned.index_copy_(1, rows, weight).flatten(1))
        own = {"weight": torch.cat(columns, 1).to(self.device), BIAS: head[BIAS].to(self.device)}
        params = in_section("network", network.params) | in_section(HEADS, own)
        return Pack(self._score_in_four_orientations, params, network.units)

    def _score_in_four_orientations(self, params: Params, x: Tensor) -> Tensor:
        """The score of each of a task's classes: the mean over its outputs for the four orientations."""
        network, total = section(params, "network"), self._run(section(params, "network"), x)[0]
        turns = range(1, ORIENTATIONS)
        heads = zip(turns, *(params[f"{HEADS}/{name}"].chunk(len(turns)) for name in ("weight", BIAS)), strict=True)
        for turn, weight, bias in heads:
            total = total + F.linear(self._run(network, x.rot90(turn, (-2, -1)))[1], weight, bias)
        return total / ORIENTATIONS

    def _run(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs and the classifier's inputs."""
        entering: dict[str, Tensor] = {}
        output = self.blueprint.forward(params, x, entering.__setitem__)
        return output, self.blueprint.features(entering)

    def represent(self, x: Tensor) -> Tensor:
        """What class statistics are computed on, (n, d): the first expert's features."""
        return self._represent(self.experts[0].params, x)

    def _represent(self, params: Params, x: Tensor) -> Tensor:
        """Square roots of features, which are closer to Gaussian."""
        rotates = f"{HEADS}/{BIAS}" in params
        network = section(params, "network") if rotates else params
        convolutions = [link for link in self.blueprint.links if link.stride]
        if convolutions:
            views = [x, x.flip(-1)] if self.settings.mirror else [x]
            found = [extract_features(self.blueprint, network, view, convolutions[-2:-1]) for view in views]
            return torch.stack(found).mean(0)
        orientations = [x.rot90(turn, (-2, -1)) for turn in range(ORIENTATIONS)] if rotates else [x]
        return torch.cat([self._run(network, each)[1] for each in orientations], 1).clamp_min(0.0).sqrt()

    @cached_property
    def predictor(self) -> Pack:
        return self._predict_with(self.densities)

    def _predict_with(self, densities: Densities) -> Pack:
        experts, weight = self.experts, self.settings.statistics_weight
        params = {name: t for n, each in enumerate(experts) for name, t in in_section(f"{n}", each.params).items()}
        if weight:
            placed = densities.select(self.places.fill) if self.places else densities
            density = {name: t.to(self.device) for name, t in placed.compute_params().items()}
            params |= in_section(DENSITY, density)
        columns = self.places.kept.to(self.device) if self.places else None

        def forward(params: Params, x: Tensor) -> Tensor:
            found = [each.forward(section(params, f"{n}"), x) for n, each in enumerate(experts)]
            score = torch.cat(found, 1)
            if not weight:
                return score
            fit = scores(section(params, DENSITY), self._represent(section(params, "0"), x))
            fit = fit if columns is None else fit.index_select(1, columns)
            return score + weight * fit.to(score.dtype)

        return Pack(forward, params)

    def score_parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The experts' scores of any number of samples, and the features that statistics are computed on."""
        score = map_batches(lambda each: torch.cat([expert(each) for expert in self.experts], 1), x, self.device)
        return score, map_batches(self.represent, x, self.device)

    def truncate(self, directions: int) -> Pack:
        return self._predict_with(self.densities.truncate(directions))

    def predict_truncated(self, x: Tensor, steps: Sequence[int]) -> list[Tensor]:
        score, h = self.score_parts(x)  # once for all steps: the experts take most of the time
        fits = (scores(self.densities.truncate(directions).compute_params(), h) for directions in steps)
        return [score + self.settings.statistics_weight * fit.to(score.dtype) for fit in fits]

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        return self.densities.class_memory("features", 0) if self.settings.statistics_weight else None

    # Removing classes

    def units_packed(self) -> Units:
        hidden, packed = self.blueprint.hidden, dict[str, Tensor]()
        for task in [task for task, own in enumerate(self.classes) if own]:
            units = packed_units(self.ledger, self._ends(task))
            packed |= {f"{task}/{layer.name}": units[layer.name] for layer in hidden}
        return packed

    def placed_numbers(self) -> int:
        tasks = [task for task, own in enumerate(self.classes) if own]
        held = [(self._ends(task), section(self.places.units, f"{task}")) for task in tasks]
        return sum(packed_numbers(self.placed_ledger, ends, more) for ends, more in held)

    @property
    def reads_first_task(self) -> bool:
        return self.settings.statistics_weight > 0

    def units_read(self) -> Units:
        links = {link.name: link.source for link in self.blueprint.classifiers}
        found = [(links[name], head[f"units/{name}"].long()) for head in self.heads if head for name in links]
        return {layer: torch.cat([units for name, units in found if name == layer]).unique() for layer, _ in found}

    def move_units(self, places: Mapping[str, Tensor]) -> None:
        for link in self.blueprint.classifiers:
            for head in self.heads if link.source in places else ():
                if head:
                    head[f"units/{link.name}"] = places[link.source][head[f"units/{link.name}"].long()].float()

    def keep_classes(self, kept: Tensor) -> None:
        self.densities.keep(kept)
        self.heads = [_keep_outputs(head, own, kept) for head, own in zip(self.heads, self.classes, strict=True)]

    # Saving and loading

    def state(self) -> dict[str, Tensor]:
        projection = self.projection.state_dict() if self.projection else {}
        return super().state() | in_section(f"task/{PROJECTION}", projection)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.projection = None

    def resume_task(self, task: Task, data: Samples) -> None:
        saved = section(self.saved_task, PROJECTION)
        super().resume_task(task, data)
        if self.projection is not None:
            self.projection.load_state_dict(saved)

    def check_state(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        statistics = self.settings.statistics_weight > 0
        rotated = [task for task, own in enumerate(self.classes) if own and self._rotates(task, input_shape)]
        check_sections(extra, *(f"{HEADS}/{task}" for task in rotated), *[DENSITY] * statistics)
        heads = [section(extra, f"{HEADS}/{task}") for task in range(len(self.classes))]
        for task in rotated:
            self._check_head(heads[task], len(self.classes[task]), f"the rotated outputs of task {task + 1}")
        if statistics:
            if not self.classes[0]:
                raise ValueError("the first task, whose features are used, has no classes")
            self.heads = heads
            empty = self._represent(self._pack_expert(0).params, torch.zeros(0, *input_shape))
            self.densities.check(section(extra, DENSITY), sum(map(len, self.classes)), empty.shape[1])

    def _check_head(self, head: Mapping[str, Tensor], classes: int, what: str) -> None:
        """Raise `ValueError` unless these can be the outputs of a task with this many classes for rotated images."""
        outputs = (ORIENTATIONS - 1) * classes
        shapes: dict[str, tuple[int, ...]] = {BIAS: (outputs,)}
        for link in self.blueprint.classifiers:
            units = head.get(f"units/{link.name}", torch.zeros(0))
            exist = units.dim() == 1 and bool(((units >= 0) & (units < self.ledger.size(link.source))).all())
            if not exist or bool((units != units.trunc()).any() | (units.diff() <= 0).any()):
                raise ValueError(f"{what}: units of {link.source} that do not exist, or are not in order")
            shapes[f"weight/{link.name}"] = outputs, len(units), link.each[1]
        numbers = {name: tensor for name, tensor in head.items() if not name.startswith("units/")}
        check_shapes(numbers, shapes, what)
        check_finite(numbers, dict.fromkeys(shapes, -math.inf), what)


def _keep_outputs(head: dict[str, Tensor], own: range, kept: Tensor) -> dict[str, Tensor]:
    """A task's outputs for rotated images without those of classes that are not kept; nothing if none is left."""
    places = kept[(kept >= own.start) & (kept < own.stop)] - own.start
    if not head or not len(places):
        return {}
    rows = torch.cat([places + turn * len(own) for turn in range(ORIENTATIONS - 1)])
    return {name: each if name.startswith("units/") else each[rows] for name, each in head.items()}
