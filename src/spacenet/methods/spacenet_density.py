"""SpaceNet with class statistics, which decide between the tasks.

SpaceNet rarely confuses classes of the same task; most of its errors are between tasks, because their classifiers were
never trained together. The statistics of a class are a few Gaussians on a representation that later tasks cannot
change: the edges of small images, or the features of the network after its first task. So the densities of classes of
different tasks are comparable, those of old classes never change by a bit, and no samples are kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.methods.base import Params, Samples, Task, Uniform, kept, map_batches
from spacenet.methods.density.calibration import Calibration
from spacenet.methods.density.combination import combine_with
from spacenet.methods.density.densities import ClassMemory, Densities, scores
from spacenet.methods.density.edges import cell_grid
from spacenet.methods.density.left_out import LeftOut
from spacenet.methods.density.readout import Readout
from spacenet.methods.density.selection import (
    add_evidence,
    begin_evidence,
    check_evidence,
    choose_weight,
    drop_held_out,
    hold_out,
    read_weight,
)
from spacenet.methods.density.typicality import TYPICAL, Typicality, rate_classes, rate_typicality, rate_with
from spacenet.methods.density.typicality_update import update_typicality
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings, Representation
from spacenet.methods.shared.places import Places
from spacenet.methods.shared.refining import split_by_task
from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.space.blueprint import Layer
from spacenet.space.ledger import as_of, check_unit_values, unit_values
from spacenet.space.pack import Pack, pack
from spacenet.utils.tensors import check_finite, check_sections, check_shapes, in_section, section

SHARPNESS, TABLE_SHARPNESS, POOLED_SHARPNESS = 0.15, 0.5, 0.12
NETWORK_WEIGHT, MAX_WEIGHT = 0.25, 1e6
WEIGHTS = "weights"
CALIBRATION = "calibration"
EVIDENCE = "evidence"
MAX_EXACT_COLUMNS = 100


@dataclass(frozen=True)
class DensitySettings(ClassStatisticsSettings, AdaptiveSettings):
    """How much of the network a task may use, how many connections are rewired, and what is kept of each class."""

    representation: Representation = "auto"
    """What class statistics are computed on: the inputs, the edges of images, or features, those of the network after
    its first task; auto is features for convolutional networks, edges for other images, otherwise inputs."""
    sharpness: Annotated[float, Gt(0), Le(1e6)] | None = None
    """Factor of the log-densities, because features are less independent than the Gaussians assume. Default: 0.5 for
    tables of up to 300 columns, 0.12 with a pooled covariance, otherwise 0.15."""
    network_weight: Annotated[float, Ge(0), Le(MAX_WEIGHT)] | None = None
    """Factor of the network's scores, which are added to the densities within a task. Default: 0.25; where statistics
    are computed on the columns of a table, it is chosen for each task on a fifth of its samples, which its network does
    not learn from: 0 if they are more probable without it, more than 0.25 only if that saves clear errors; 0 where a
    fifth would be fewer than 20 samples."""

    exact_updates: bool | None = None
    """Keep the covariance matrix of each Gaussian, d · (d + 1) / 2 numbers of 8 bytes with d columns, so that more
    samples of a known class change its statistics as if all had come together. Otherwise they change mean and total
    variance so, and the directions as well as what is kept allows. Default: for tables of up to 100 columns."""
    random_features: Annotated[int, Ge(0), Le(10_000)] = 0
    """Random features of the representation. A linear classifier of all classes is computed on them in closed form and
    its scores are added to the densities. 0 for none. Memory grows with the square: 17 MiB for 3000."""

    def validate(self) -> None:
        super().validate()
        if self.pooled_covariance and self.random_features:
            message = "goes with the scale of the first task; set pooled_covariance to False"
            raise SettingsError(message, setting="random_features")
        if self.exact_updates and (self.pooled_covariance or self.random_features):
            message = "goes neither with a pooled covariance, which is exact anyway, nor with random features"
            raise SettingsError(message, setting="exact_updates")
        if self.balance != "none":
            message = "class densities, not scores, decide between tasks in spacenet-density; it must be none"
            raise SettingsError(message, setting="balance")


class SpaceNetDensity(AdaptiveMethod):
    """SpaceNet with class statistics, which decide between the tasks. Keeps no samples."""

    name = "spacenet-density"
    reference = "SpaceNet and, for densities on frozen features, Goswami et al.: FeCAM. NeurIPS, 2023"
    settings_from = "Searched on held-out training data."
    settings: DensitySettings
    densities: Densities = kept("density", on_cpu=True)
    readout: Readout = kept("readout", on_cpu=True)
    """The classifier on random features, if there are any."""
    first_units: dict[str, Tensor] = kept("view", dict, on_cpu=True)
    """The parameters of the network's units after the first task, where features are used."""
    weights: Tensor = kept(WEIGHTS, Tensor, on_cpu=True)
    """The network's weight in each task, (tasks,), where it was chosen; otherwise empty."""
    evidence: Tensor = kept(EVIDENCE, Tensor, on_cpu=True)
    """For each task what samples that came later say about the network's weight; empty if there were none."""
    typical: Typicality = kept(TYPICAL, Typicality, on_cpu=True)
    """What is usual of each class's own samples."""
    calibration: Calibration = kept(CALIBRATION, Calibration, on_cpu=True)
    """Which factor of all scores makes probabilities of them."""
    search_space: ClassVar = {
        "method.shrinkage": Uniform(0.02, 0.95),
        "method.directions": Uniform(4, 40, integer=True),
        "method.sharpness": Uniform(0.02, 1.0, log=True),
        "method.network_weight": Uniform(0.0, 1.0),
    }

    def setup(self) -> None:
        super().setup()
        kind = self.settings.representation
        self.uses_features = kind == "features" or (kind == "auto" and self.blueprint.convolves)
        self.densities = self.settings.build_densities(whiten=self.uses_features)
        self.readout = Readout(self.settings.random_features, self.rng("random features").initial_seed())
        self.sharpness = SHARPNESS if self.settings.sharpness is None else self.settings.sharpness
        self.is_table = self.chooses_weight = False

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        kind = self._representation(shape)
        narrow = class_statistics.is_table(shape, kind) and shape[0] <= MAX_EXACT_COLUMNS
        possible = not self.settings.pooled_covariance and not self.readout.size
        exact = possible and (narrow if self.settings.exact_updates is None else self.settings.exact_updates)
        self.densities = replace(self.settings.suit(self.densities, shape, kind), updatable=True, exact=exact)
        if self.settings.sharpness is None:
            usual = TABLE_SHARPNESS if class_statistics.is_narrow(shape, kind) else SHARPNESS
            self.sharpness = POOLED_SHARPNESS if self.settings.pooled_covariance else usual
        self.is_table = class_statistics.is_table(shape, kind)
        self.chooses_weight = self.settings.network_weight is None and self.is_table and not self.readout.size
        self.readout.grid = cell_grid(shape) if kind == "edges" else None
        super().check_inputs(shape)

    def _representation(self, shape: tuple[int, ...]) -> Representation:
        kind: Representation = "features" if self.uses_features else self.settings.representation
        return class_statistics.resolve_representation(kind, shape)

    def training_data(self, task: Task) -> Samples:
        return drop_held_out(super().training_data(task), self._hold_out(task))

    def _hold_out(self, task: Task) -> Tensor | None:
        """Which of the task's samples the network does not learn from, because its weight is chosen on them."""
        if not self.chooses_weight:
            return None
        return hold_out(task.train.y.cpu(), task.classes, self.rng("held out", task.index))

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self.uses_features and not self.first_units:
            self.first_units = unit_values(self.ledger)
        rows = class_statistics.described_rows(task.train, task.classes)
        x, y, w = task.train.x[rows], task.train.y[rows].cpu(), task.train.weight
        w = None if w is None else w[rows].cpu()
        h = map_batches(self.represent, x, self.device)
        if self.chooses_weight or len(self.weights):
            before = self.weights if len(self.weights) else torch.full((task.index,), NETWORK_WEIGHT)
            held = self._hold_out(task)
            weight = self._fixed_weight if held is None else self._choose_weight(task, x, h, y, held[rows])
            self.weights = torch.cat([before, torch.tensor([weight])])
            if len(self.evidence):
                self.evidence = torch.cat([self.evidence, begin_evidence(weight)[None]])
        known = self.densities.snapshot()
        self._add_classes(self.densities, task, h, y, w)
        if self.readout.size and self.densities.scaling is not None:
            self.readout.add(h, y, task.classes, self.densities.scaling, w)
        left_out = self.densities.leave_out(known, h, y, task.classes, self.rng(TYPICAL, task.index))
        self.typical.add(left_out, task.classes, self.densities.typical_width())
        if len(self.calibration) == task.index:  # else the model was made by a version that did not keep it
            self._calibrate(task, x, h, left_out)

    def _calibrate(self, task: Task, x: Tensor, h: Tensor, left_out: LeftOut) -> None:
        """Find out how sure the scores may be, given samples that statistics were computed without."""
        held = self._hold_out(task) if float(self._weights[task.index]) else None
        used = torch.ones(len(left_out.y), dtype=torch.bool)
        if held is not None:  # samples that the network did not learn from, whose weight was chosen on them
            used = held[class_statistics.described_rows(task.train, task.classes)][left_out.rows]
        rows, join = left_out.rows[used], self._combine_with(self.densities)
        network = map_batches(self.pack, x[rows], self.device) if len(rows) else None
        self.calibration.add(join.forward(join.params, h[rows], left_out.density[used], network), left_out.y[used])

    def _add_classes(
        self, densities: Densities, task: Task, h: Tensor, y: Tensor, weight: Tensor | None = None
    ) -> None:
        densities.add(h, y, task.classes, self.rng(class_statistics.SEED, task.index), weight)

    def _choose_weight(self, task: Task, x: Tensor, h: Tensor, y: Tensor, held: Tensor) -> float:
        """The network's weight in a task that it has just learned, given samples, their representation and classes."""
        densities = self.densities.without_classes()
        self._add_classes(densities, task, h[~held], y[~held])
        fit = scores(densities.compute_params(), h[held]) * self.sharpness
        own = slice(task.classes.start, task.classes.stop)
        network = map_batches(self.pack, x[held], self.device)[:, own]
        return choose_weight(fit, network, y[held] - own.start)

    @property
    def can_update(self) -> bool:
        return self.densities.can_update

    def update(self, samples: Samples, training: TrainingConfig) -> None:
        rows = class_statistics.described_rows(samples, range(len(self.densities)))
        x, y, w = samples.x[rows], samples.y[rows].cpu(), samples.weight
        w = None if w is None else w[rows].cpu()
        h = map_batches(self.represent, x, self.device)
        self._weigh_network(x, h, y)
        fit, join = scores(self.densities.compute_params(), h), self._combine_with(self.densities)
        if len(self.calibration):
            found = join.forward(join.params, h, fit, map_batches(self.pack, x, self.device))
            for task, own in split_by_task(y, self.classes):
                self.calibration.update(task, found[own], y[own])
        if len(self.typical) and self.densities.counts is not None:
            likeness = self.densities.likeness(self.densities.likeness_params(), h, fit)
            counts, wide = self.densities.counts, self.densities.typical_width()
            self.typical.table = update_typicality(self.typical.table, likeness, y, counts, wide)
        self.densities.update(h, y, len(self.classes[0]), w)
        if self.readout.size and self.densities.scaling is not None:
            self.readout.update(h, y, self.densities.scaling, w)
        self.invalidate()

    def _weigh_network(self, x: Tensor, h: Tensor, y: Tensor) -> None:
        """Let samples that nothing has learned from yet decide how much the network counts among a task's classes."""
        if self.settings.network_weight is not None:
            return
        if not len(self.weights):
            self.weights = torch.full((len(self.classes),), self._fixed_weight)
        if not len(self.evidence):
            self.evidence = torch.stack([begin_evidence(weight) for weight in self.weights.tolist()])
        for task, rows in split_by_task(y, self.classes):
            own = self.classes[task]
            if len(own) > 1 and self.evidence[task, 0] > 0:
                columns = slice(own.start, own.stop)
                fit = scores(self.densities.compute_params(), h[rows])[:, columns] * self.sharpness
                network = map_batches(self.pack, x[rows], self.device)[:, columns]
                self.evidence[task] = add_evidence(self.evidence[task], fit, network, y[rows] - own.start)
                self.weights[task] = read_weight(self.evidence[task])

    @property
    def _fixed_weight(self) -> float:
        """The network's weight where it is not chosen on held-out samples."""
        if self.settings.network_weight is not None:
            return self.settings.network_weight
        return 0.0 if self.chooses_weight else NETWORK_WEIGHT

    def represent(self, x: Tensor) -> Tensor:
        """The representation of samples that class statistics are computed on, (n, d)."""
        return self._represent(self._first_params, x)

    def _represent(self, first_params: Params, x: Tensor) -> Tensor:
        if self.uses_features:
            return class_statistics.extract_features(self.blueprint, first_params, x)
        return class_statistics.FIXED[self._representation(tuple(x.shape[1:]))](x)

    @cached_property
    def _first_params(self) -> Params:
        """The parameters of the network after the first task, where features are used."""
        return pack(as_of(self.ledger, 1, self.first_units), self.device).params if self.first_units else {}

    @cached_property
    def predictor(self) -> Pack:
        return self._predict_with(self.densities)

    def truncate(self, directions: int) -> Pack:
        return self._predict_with(self.densities.truncate(directions))

    def _predict_with(self, densities: Densities) -> Pack:
        describe, classify = self._describe_with(densities), self._classify_with(densities)

        def forward(params: Params, x: Tensor) -> Tensor:
            found: Tensor = classify.forward(params, x, *describe.forward(params, x))
            return found

        return Pack(forward, {**describe.params, **classify.params})

    @cached_property
    def detector(self) -> Pack:
        describe, rate = self._describe_with(self.densities), self._rater

        def forward(params: Params, x: Tensor) -> Tensor:
            found: Tensor = rate.forward(params, *describe.forward(params, x))
            return found

        return Pack(forward, {**describe.params, **rate.params})

    @cached_property
    def open_set_predictor(self) -> Pack:
        describe, classify, rate = self._describe_with(self.densities), self._classify_with(self.densities), self._rater

        def forward(params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
            described = describe.forward(params, x)
            return classify.forward(params, x, *described), rate.forward(params, *described)

        return Pack(forward, {**describe.params, **classify.params, **rate.params})

    def _describe_with(self, densities: Densities) -> Pack:
        """(params, x) → the representation (n, d), and densities of all classes as `scores` computes them, or of all
        `places`, where there are any."""
        placed = densities.select(self.places.fill) if self.places else densities
        params = in_section("view", self._first_params) | in_section("density", placed.compute_params())
        reads_first = bool(self.first_units)

        def forward(params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
            h = self._represent(section(params, "view") if reads_first else {}, x)
            return h, scores(section(params, "density"), h)

        return Pack(forward, self._on_device(params))

    def _classify_with(self, densities: Densities) -> Pack:
        """(params, x, and what these densities describe of it) → the scores of all classes."""
        network, places, factor = self.placed_pack, self.places, self.calibration.factor
        join = self._combine_with(densities, places)
        uses_network = bool(self._weights.any())
        params = in_section("network", network.params) if uses_network else {}

        def forward(params: Params, x: Tensor, h: Tensor, fit: Tensor) -> Tensor:
            logits = network.forward(section(params, "network"), x) if uses_network else None
            found: Tensor = join.forward(params, h, places.sink(fit) if places else fit, logits)
            return found * factor

        found = Pack(forward, self._on_device({**params, **join.params}))
        return places.drop(found, self.device) if places else found

    def _combine_with(self, densities: Densities, places: Places | None = None) -> Pack:
        """(params, what densities describe of samples, the network's scores or None) → scores, not yet calibrated: of
        all classes, or of all places."""
        reads_out = self.readout.size > 0 and densities.scaling is not None
        held = self.readout.select(places.fill) if places else self.readout
        readout = held.compute_params(densities.scaling) if reads_out and densities.scaling else {}
        tasks = places.tasks if places else self.classes[: self.tasks_learned]
        return combine_with(tasks, self._weights, self.sharpness, readout, densest=self.is_table)

    @property
    def _weights(self) -> Tensor:
        """The network's weight in each task."""
        chosen = self.settings.network_weight is None and len(self.weights)
        return self.weights if chosen else torch.full((self.tasks_learned,), self._fixed_weight)

    @property
    def _rater(self) -> Pack:
        """(params, and what densities describe of samples) → how typical these are."""
        return self._rate_with(rate_typicality, self.densities.typical_share, of_all=self.densities.typical_of_all)

    def _rate_with(self, rate: Callable[[Params, Tensor], Tensor], share: float = 0.0, *, of_all: bool = False) -> Pack:
        if not len(self.typical):
            reason = "the model was made by a version of spacenet that did not keep what is typical of each class"
            reason += ", or a task had one sample of each class" if self.settings.pooled_covariance else ""
            raise SettingsError(f"{reason}; learn its tasks again with this version", setting="unknown")
        typical = self.typical.compute_params(share, of_all=of_all)
        kept = self.densities.likeness_params()
        found = rate_with(rate, self.densities.likeness, typical, kept, edges=self.readout.grid is not None)
        columns = self.places.kept.to(self.device) if self.places else None

        def forward(params: Params, h: Tensor, fit: Tensor) -> Tensor:
            typicality: Tensor = found.forward(params, h, fit if columns is None else fit.index_select(1, columns))
            return typicality

        return Pack(forward, self._on_device(found.params))

    def class_typicality(self, x: Tensor) -> Tensor:
        describe, rate = self._describe_with(self.densities), self._rate_with(rate_classes)
        return map_batches(lambda x: rate.forward(rate.params, *describe.forward(describe.params, x)), x, self.device)

    def _on_device(self, params: Params) -> dict[str, Tensor]:
        return {name: tensor.to(self.device) for name, tensor in params.items()}

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        kinds = (self.readout, self.typical, self.calibration)
        others = [self.first_units, *(each.tensors() for each in kinds)]
        extra = sum(tensor.nbytes for each in others for tensor in each.values())
        return self.densities.class_memory(self._representation(input_shape), extra)

    @property
    def reads_first_task(self) -> bool:
        return self.uses_features

    def least_size(self, layer: Layer) -> int:
        """The first task's features are computed with all units that there were then."""
        kept = [len(self.first_units[key]) for key in layer.keys() if key in self.first_units]
        return max([layer.size, *kept])

    def keep_classes(self, kept: Tensor) -> None:
        self.densities.keep(kept)
        self.readout.keep(kept)
        self.typical.keep(kept)
        of_first = kept[kept < len(self.classes[0])]
        for key in self.blueprint.output.keys() if self.first_units else ():
            self.first_units[key] = self.first_units[key][of_first]

    def check_state(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        if weights := {name: tensor for name, tensor in extra.items() if name == WEIGHTS}:
            check_shapes(weights, {WEIGHTS: (len(self.classes),)}, "the network")
            check_finite(weights, {WEIGHTS: 0.0}, "the network")
            if float(weights[WEIGHTS].max()) > MAX_WEIGHT:
                raise ValueError("the network: weights has values that are not possible")
            extra = {name: tensor for name, tensor in extra.items() if name != WEIGHTS}
        if EVIDENCE in extra:
            check_evidence(extra[EVIDENCE], len(self.classes))
            extra = {name: tensor for name, tensor in extra.items() if name != EVIDENCE}
        if typical := section(extra, TYPICAL):
            Typicality.check(typical, sum(map(len, self.classes)))
        if calibration := section(extra, CALIBRATION):
            Calibration.check(calibration, len(self.classes))
        optional = {
            TYPICAL: bool(typical),
            CALIBRATION: bool(calibration),
            "view": self.uses_features,
            "readout": self.readout.size > 0,
        }
        check_sections(extra, "density", *(name for name, used in optional.items() if used))
        first_params: Params = {}
        if self.uses_features:
            if not self.classes[0]:
                raise ValueError("the first task, whose features are used, has no classes")
            units = section(extra, "view")
            check_unit_values(self.ledger, 1, len(self.classes[0]), units)
            first_params = pack(as_of(self.ledger, 1, units)).params
        empty = self._represent(first_params, torch.zeros(0, *input_shape))  # has the dimension, and needs no memory
        self.densities.check(section(extra, "density"), sum(map(len, self.classes)), empty.shape[1])
        if self.readout.size:
            self.readout.check(section(extra, "readout"), sum(map(len, self.classes)))
