"""SpaceNet with an expert for each task: a dense part of the space that shares nothing with other tasks.

A task gets units of its own and all connections between them, so a step costs the same in the last task as in the
first, and what one task has learned no other one can disturb. Square images are learned in four orientations, each
class in each orientation as a class of its own, and these outputs are kept: a class is scored by the mean of its score
in each orientation. Experts never see each other's classes, but their raw scores are comparable; statistics of each
class on the first expert's features help to decide between tasks. In a convolutional network these are the inputs of
the last convolution but one, which tell unknown classes apart better than what the last one makes of them. Statistics
on each expert's own features say how typical an input is of what the expert has learned.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.data.memory import select_rows
from spacenet.methods.base import Batch, Params, Samples, Task, kept, map_batches
from spacenet.methods.density.densities import ClassMemory, Densities, scores
from spacenet.methods.density.selection import drop_held_out, hold_out
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import extract_features
from spacenet.methods.shared.contrast import contrastive_loss, make_projection
from spacenet.methods.shared.expert_settings import ExpertSettings
from spacenet.methods.shared.own_statistics import own_params, own_scores
from spacenet.methods.shared.places import drop_places
from spacenet.methods.shared.rotated_outputs import BIAS, align_head, check_head, keep_outputs, read_head
from spacenet.methods.shared.rotations import ORIENTATIONS
from spacenet.methods.shared.score_weights import CandidateWeights, ScoreWeights
from spacenet.methods.shared.sparse import FEATURES, AdaptiveMethod
from spacenet.space.budget import TaskBudget, dense_budget
from spacenet.space.pack import Pack, Units, pack, packed_numbers, packed_units
from spacenet.space.workspace import Workspace
from spacenet.utils.tensors import check_sections, in_section, section

PROJECTION, DENSITY, HEADS, OWN, SUMS = "projection", "density", "rotated", "own", "accuracy_sums"


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
    own: list[dict[str, Tensor]] = kept(OWN, list, on_cpu=True)
    """For each task the statistics of its classes on its own expert's features."""
    accuracy_sums: Tensor = kept(SUMS, Tensor, on_cpu=True)
    """What held-out samples say of the candidate weights, see `CandidateWeights`; empty if none were measured."""
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

    @property
    def candidates(self) -> CandidateWeights:
        return CandidateWeights.of(self.settings.statistics_weight, self.settings.own_statistics_weight)

    @property
    def weights(self) -> ScoreWeights:
        """What log-densities are multiplied by where they are added to the experts' scores."""
        return self.candidates.choose(self.accuracy_sums)

    @property
    def chosen_settings(self) -> dict[str, float]:
        found = {"statistics_weight": self.weights.statistics, "own_statistics_weight": self.weights.own}
        return {name: weight for name, weight in found.items() if getattr(self.settings, name) == "auto"}

    # Training

    def training_data(self, task: Task) -> Samples:
        return drop_held_out(super().training_data(task), self._hold_out(task))

    def _hold_out(self, task: Task) -> Tensor | None:
        """Which of the task's samples are not trained on, because weights are chosen on them. None in the first task,
        where nothing is decided between tasks."""
        if not task.index or not self.candidates.undecided:
            return None
        return hold_out(task.train.y.cpu(), task.classes, self.rng("held out", task.index))

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
        head = self.rotated_head
        self.heads.append(read_head(head, self.active_workspace(), self.blueprint) if head else {})
        super().end_task(task)
        self.projection = None
        held = self._hold_out(task)
        if held is not None:
            self._rate_weights(task, held)
        self._describe(task, task.train)

    def _describe(self, task: Task, samples: Samples) -> None:
        """Add statistics of a task's classes, computed on these samples of them."""
        y, weight = samples.y.cpu(), samples.weight
        if self.settings.keeps_statistics:
            h, rng = map_batches(self.represent, samples.x, self.device), self.rng(class_statistics.SEED, task.index)
            self.densities.add(h, y, task.classes, rng, weight)
        if self.settings.keeps_own_statistics:
            represent = partial(self._represent_own, self._pack_expert(task.index).params)
            h, own = map_batches(represent, samples.x, self.device), self._own_densities()
            own.add(h, y, task.classes, self.rng(OWN, task.index), weight)
            self.own.append(own.tensors())

    def _rate_weights(self, task: Task, held: Tensor) -> None:
        """Measure the candidate weights on held-out samples, with statistics that are computed without these."""
        known, rows = copy.deepcopy(self.densities), torch.nonzero(held)[:, 0]
        self._describe(task, drop_held_out(task.train, held))
        score, own, h = self.score_parts(select_rows(task.train.x, rows))
        found = self.candidates.measure(score, *self._log_densities(own, h), task.train.y.cpu()[rows])
        self.accuracy_sums = self.accuracy_sums + found if len(self.accuracy_sums) else found
        self.densities, self.own = known, self.own[: task.index]

    def _own_densities(self, tensors: Mapping[str, Tensor] | None = None) -> Densities:
        """Statistics of a task's classes on its own expert's features, as `own` holds them; empty without that."""
        chosen = replace(self.settings, components=self.settings.components or 1, pooled_covariance=None)
        found = chosen.build_densities(whiten=True)
        found.load(tensors or {})
        return found

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
        return keep_outputs(head, len(own), self.places.fill_of(task) - own.start) if self.places else head

    def _add_head(self, network: Pack, head: dict[str, Tensor], ends: Units) -> Pack:
        own = {name: t.to(self.device) for name, t in align_head(head, network, ends, self.blueprint).items()}
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

    def _represent_own(self, params: Params, x: Tensor) -> Tensor:
        """What the own statistics of an expert with these parameters are computed on: square roots of its last
        features; in four orientations, where it is no convolutional network and has learned them."""
        if not self.blueprint.convolves:
            return self._represent(params, x)
        network = section(params, "network") if f"{HEADS}/{BIAS}" in params else params
        views = [x, x.flip(-1)] if self.settings.mirror else [x]
        return torch.stack([self._run(network, view)[1].clamp_min(0.0).sqrt() for view in views]).mean(0)

    def own_params(self, directions: int | None = None) -> list[Params]:
        """What the log-densities of the classes of each of `experts` are computed with, on its own features."""
        learned = enumerate(self.classes[: self.tasks_learned])
        return [self._own_params_of(task, directions) for task, own in learned if own]

    def _own_params_of(self, task: int, directions: int | None) -> Params:
        own, chosen = self._own_densities(self.own[task]), None
        if self.places:
            own = own.select(self.places.fill_of(task) - self.classes[task].start)
            chosen = self.places.kept_of(task)
        return own_params(own.truncate(own.directions if directions is None else directions), chosen)

    def score_own(self, params: Sequence[Params], features: Sequence[Tensor]) -> Tensor:
        """The log-density of each class given the features of its expert, from what `own_params` returned."""
        shrinkage = self._own_densities().shrinkage
        return torch.cat([own_scores(own, h, shrinkage) for own, h in zip(params, features, strict=True)], 1)

    @cached_property
    def predictor(self) -> Pack:
        return self._predict_with(self.densities)

    def _predict_with(self, densities: Densities, directions: int | None = None) -> Pack:
        experts, weights = self.experts, self.weights
        own = self.own_params(directions) if weights.own else []
        params = {name: t for n, each in enumerate(experts) for name, t in in_section(f"{n}", each.params).items()}
        statistics = {name: t for n, each in enumerate(own) for name, t in in_section(f"{OWN}/{n}", each).items()}
        if weights.statistics:
            placed = densities.select(self.places.fill) if self.places else densities
            statistics |= in_section(DENSITY, placed.compute_params())
        params |= {name: t.to(self.device) for name, t in statistics.items()}
        columns = self.places.kept.to(self.device) if self.places else None

        def forward(params: Params, x: Tensor) -> Tensor:
            parts = [section(params, f"{n}") for n in range(len(experts))]
            score = torch.cat([each.forward(part, x) for each, part in zip(experts, parts, strict=True)], 1)
            typical = fit = None
            if own:
                features = [self._represent_own(part, x) for part in parts]
                typical = self.score_own([section(params, f"{OWN}/{n}") for n in range(len(parts))], features)
            if weights.statistics:
                fit = scores(section(params, DENSITY), self._represent(parts[0], x))
                fit = fit if columns is None else fit.index_select(1, columns)
            return weights.add_up(score, typical, fit)

        return Pack(forward, params)

    def score_parts(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """The experts' scores of any number of samples, the features of each expert that its own statistics are
        computed on, if there are any, and those that statistics of all classes are computed on."""
        experts = self.experts
        score = map_batches(lambda each: torch.cat([expert(each) for expert in experts], 1), x, self.device)
        own = experts if self.settings.keeps_own_statistics else []
        functions = [partial(self._represent_own, expert.params) for expert in own]
        features = [map_batches(function, x, self.device) for function in functions]
        return score, features, map_batches(self.represent, x, self.device)

    def truncate(self, directions: int) -> Pack:
        return self._predict_with(self.densities.truncate(directions), directions)

    def predict_truncated(self, x: Tensor, steps: Sequence[int]) -> list[Tensor]:
        score, own, h = self.score_parts(x)  # once for all steps: the experts take most of the time
        return [self.weights.add_up(score, *self._log_densities(own, h, directions)) for directions in steps]

    def _log_densities(
        self, own: Sequence[Tensor], h: Tensor, directions: int | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """The log-density of each class given its own and the first expert's features, of what statistics there are."""
        densities = self.densities if directions is None else self.densities.truncate(directions)
        typical = self.score_own(self.own_params(directions), own) if own else None
        return typical, scores(densities.compute_params(), h) if self.settings.keeps_statistics else None

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        held = [each for each in self.own if each]
        if not held:
            return self.densities.class_memory("features", 0) if self.settings.keeps_statistics else None
        size = sum(tensor.nbytes for each in held for tensor in each.values())
        own = self._own_densities(held[0]).class_memory(
            "features", size - sum(tensor.nbytes for tensor in held[0].values())
        )
        both = self.densities.class_memory("features", size)
        return own if own is None or both is None else replace(both, floats=both.floats + own.floats)

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
        return self.settings.keeps_statistics

    @property
    def tasks_described(self) -> Sequence[int]:
        return range(len(self.classes)) if self.settings.keeps_own_statistics else super().tasks_described

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
        places = [kept[(kept >= own.start) & (kept < own.stop)] - own.start for own in self.classes]
        heads = zip(self.heads, self.classes, places, strict=True)
        self.heads = [keep_outputs(head, len(own), here) for head, own, here in heads]
        described = zip(self.own, places, strict=False)  # there are none if there are no such statistics
        self.own = [self._own_densities(each).select(here).tensors() if len(here) else {} for each, here in described]

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
        if SUMS in extra:
            self.candidates.check(extra[SUMS], len(self.classes))
            extra = {name: tensor for name, tensor in extra.items() if name != SUMS}
        rotated = [task for task, own in enumerate(self.classes) if own and self._rotates(task, input_shape)]
        described = [task for task, own in enumerate(self.classes) if own and self.settings.keeps_own_statistics]
        names = [f"{HEADS}/{task}" for task in rotated] + [f"{OWN}/{task}" for task in described]
        check_sections(extra, *names, *[DENSITY] * self.settings.keeps_statistics)
        heads = [section(extra, f"{HEADS}/{task}") for task in range(len(self.classes))]
        for task in rotated:
            check_head(heads[task], self.ledger, len(self.classes[task]), f"the rotated outputs of task {task + 1}")
        self.heads = heads
        if self.settings.keeps_statistics:
            if not self.classes[0]:
                raise ValueError("the first task, whose features are used, has no classes")
            empty = self._represent(self._pack_expert(0).params, torch.zeros(0, *input_shape))
            self.densities.check(section(extra, DENSITY), sum(map(len, self.classes)), empty.shape[1])
        for task in described:
            empty = self._represent_own(self._pack_expert(task).params, torch.zeros(0, *input_shape))
            self._own_densities().check(section(extra, f"{OWN}/{task}"), len(self.classes[task]), empty.shape[1])
