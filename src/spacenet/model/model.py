"""A model: a network that has learned some tasks, and all that is needed to use it and to learn more.

It takes raw inputs, as the user has them, and predicts the user's labels. The estimator, the commands and the
service are ways to use it.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet.config.model import ModelConfig, PreprocessingConfig
from spacenet.config.presets import resolve_automatic
from spacenet.data.augmentation import check_images
from spacenet.data.checks import (
    MAX_MAGNITUDE,
    check_labels,
    check_same_type,
    check_samples,
    looks_scaled,
    match_channels,
    move_channels,
)
from spacenet.data.features import encode_samples
from spacenet.data.memory import normalize, thin
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array, Normalization, resolve_preprocessing
from spacenet.data.stream import Samples, Task
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.loading import load_encoder
from spacenet.encoders.weights import EncoderWeights, pack_encoder, unpack_encoder
from spacenet.errors import DataError, SettingsError
from spacenet.methods import get_method
from spacenet.methods.base import Method
from spacenet.model.labels import Label, distinct, find_class, merge, rename, same
from spacenet.model.learning import InMemory, apply_weights, find_outputs, train_task, warn_of_space
from spacenet.model.unknown import check_coverage
from spacenet.nets import build_net, resolve_net
from spacenet.space.blueprint import CPU
from spacenet.training.hardware import find_hardware
from spacenet.training.loop import Epoch
from spacenet.utils.text import plural
from spacenet.utils.threads import use_threads


@dataclass(repr=False)
class Model:
    """A network with its labels. Output i stands for the i-th label of all tasks, one after the other.

    A label that comes again in a later task has several outputs; its probability is their sum.
    """

    config: ModelConfig
    input_shape: tuple[int, ...]
    normalization: Normalization | None = None  # fitted on the first task
    tasks: list[tuple[Label, ...]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)  # what a run measured, if the model comes from one
    method: Method = None  # type: ignore[assignment]
    """What learns and predicts, on the CPU; a new one if none is given."""
    encoder_weights: EncoderWeights | None = field(default=None, compare=False)
    """The encoder's weights, if they are in the model's file."""
    origin: tuple[Path, str] | None = field(default=None, compare=False)
    """The file that it was loaded from or saved to, and that file's checksum."""
    _before: "Model | None" = field(default=None, init=False, compare=False)
    """The model before its last change in this process."""

    def __post_init__(self) -> None:
        config = resolve_automatic(self.config, self.input_shape)
        self.config = replace(config, net=resolve_net(config.net, self.input_shape))
        if self.method is None or self.method.device.type != "cpu":
            self.method = self.build(CPU, self.method)

    def build(self, device: torch.device = CPU, learned: Method | None = None) -> Method:
        """A new method for this model, with the state and the kept samples of `learned` if that is given."""
        if self.config.training.augment != "none":
            check_images(self.input_shape)
        blueprint = build_net(self.config.net, self.input_shape) if learned is None else learned.design
        method = get_method(self.config.method)(blueprint, self.config.method_settings, self.config.seed, device)
        method.check_inputs(self.input_shape)
        if learned is not None:
            method.load_state(learned.state())
            if not method.needs_old_data:  # a model does not keep all old data
                method.memory = learned.memory.copy()
        return method

    @property
    def outputs(self) -> list[Label]:
        """The label of each output."""
        return [label for task in self.tasks for label in task]

    @property
    def classes(self) -> list[Label]:
        """The labels, in the order in which they came; the columns of `predict_proba` follow it."""
        return distinct(self.outputs)

    def __repr__(self) -> str:
        learned = f"{plural(len(self.classes), 'class', 'es')} in {plural(len(self.tasks), 'task')}"
        return f"Model({self.config.method}, {self.config.net.name}: {learned})"

    # Predicting

    def predict(self, x: Array) -> list[Label]:
        """The most probable class of each sample."""
        classes = self.classes
        return [classes[number] for number in self.predict_proba(x).argmax(1)]

    def typicality(self, x: Array) -> Array:
        """How typical each sample is of the class that it is most like, (n,): about the fraction of the class's own
        samples that are less typical. A sample that is below 0.05 is unknown, if 5 % of the samples of known classes
        may be called so too. Never raises an error because values are large."""
        return self._rate(x, self.method.typicality)

    def predict_set(self, x: Array, coverage: float = 0.9) -> Array:
        """Which classes each sample may be of, (n, classes), as booleans: `coverage` is the fraction of the samples of
        a class whose set has it. A set has the classes of whose own samples at least 1 - coverage are less typical; it
        is empty for samples that are like no class."""
        return self.class_typicality(x) >= 1 - check_coverage(coverage)

    def class_typicality(self, x: Array) -> Array:
        """How typical each sample is of each class, (n, classes): about the fraction of the class's own samples that
        are less typical. Of a class with several outputs, the largest of theirs."""
        each = self._rate(x, self.method.class_typicality)
        found = np.zeros((len(each), len(self.classes)))
        for output, number in enumerate(self.columns().tolist()):
            found[:, number] = np.maximum(found[:, number], each[:, output])
        return found

    def _rate(self, x: Array, rate: Callable[[Tensor], Tensor]) -> Array:
        if x.dtype.kind == "f":
            x = np.clip(x, -MAX_MAGNITUDE, MAX_MAGNITUDE)
        x = self.check_inputs(x)
        found = np.asarray(rate(self.fitted_normalization(x)).numpy())
        found[self.fitted_normalization.is_far(x) | self.find_empty(x)] = 0.0
        return found

    def find_empty(self, x: Array) -> Array:
        """Which samples are an encoder's features that are all 0, as those of images of one color, (n,)."""
        if not self.config.preprocessing.encoder:
            return np.zeros(len(x), bool)
        return ~np.asarray(x.any(tuple(range(1, x.ndim))))

    def scores(self, x: Array) -> Tensor:
        """One score for each output. Raises `DataError` where the numbers in between are too large for 32 bits."""
        x = self.check_inputs(x)
        found = self.method.predict_all(self.fitted_normalization(x))
        bad = (~found.isfinite()).any(1).nonzero().flatten()
        if len(bad):
            count = f"{len(bad)} of {len(x)} samples, the first in row {bad[0]}"
            raise DataError(f"the model has no finite scores for {count}: its weights or these values are too large")
        return found

    def _logits(self, x: Array) -> Tensor:
        return self.method.logits(self.scores(x)).double()

    def predict_proba(self, x: Array) -> Array:
        """One probability for each class, (n, classes), in 64 bits: rounding must not make two of them equal."""
        each = self._logits(x).softmax(1)
        if len(each.T) == len(self.classes):
            return np.asarray(each.numpy())
        total = torch.zeros(len(each), len(self.classes), dtype=torch.float64)
        return np.asarray(total.index_add_(1, self.columns(), each).numpy())

    def class_scores(self, x: Array) -> Array:
        """The logarithms of the same, which tell probabilities near 0 apart."""
        each, columns = self._logits(x).log_softmax(1), self.columns()
        if len(each.T) == len(self.classes):
            return np.asarray(each.numpy())
        found = [each[:, columns == number].logsumexp(1) for number in range(len(self.classes))]
        return np.asarray(torch.stack(found, 1).numpy())

    def columns(self) -> Tensor:
        """For each output, the index of its class."""
        place = {(type(label), label): number for number, label in enumerate(self.classes)}
        return torch.tensor([place[type(label), label] for label in self.outputs], dtype=torch.long)

    @property
    def fitted_normalization(self) -> Normalization:
        """The preprocessing; an error before the first task is learned."""
        if self.normalization is None:
            raise DataError("the model has not learned anything yet")
        return self.normalization

    def check_shape(self, x: Array) -> None:
        """Raise `DataError` if the samples do not have the shape that the model takes."""
        if tuple(x.shape[1:]) != self.input_shape:
            raise DataError(f"samples have the shape {tuple(x.shape[1:])}; the model takes {self.input_shape}")

    def check_inputs(self, x: Array) -> Array:
        """Raw inputs in a type to compute with. Raises `DataError` if the model cannot take them."""
        if x.dtype.kind in "OU" and self.encoder is not None:  # texts, or sounds of different lengths
            return encode_samples(self.encoder, x)
        x = check_samples(x, "x")
        if x.shape[1:] != self.input_shape and self.encoder is not None:
            return encode_samples(self.encoder, move_channels(x, "x"))
        x = match_channels(x, self.input_shape)
        self.check_shape(x)
        return x

    @cached_property
    def encoder(self) -> Encoder | None:
        """What turns raw samples into the features that the model takes, if there is such a thing."""
        preprocessing = self.config.preprocessing
        if not preprocessing.encoder:
            return None
        identity = preprocessing.encoder, preprocessing.encoder_checksum, preprocessing.encoder_version
        if self.encoder_weights is not None:
            return unpack_encoder(self.encoder_weights, *identity)
        return load_encoder(*identity)

    def include_encoder(self, include: bool = True) -> None:
        """Keep the encoder's weights in the model's file, or leave them out."""
        if not include:
            self.encoder_weights = None
        elif self.encoder is None:
            raise SettingsError("the model has no encoder", setting="include_encoder")
        elif self.encoder_weights is None:
            self.encoder_weights = pack_encoder(self.encoder)

    def target(self, resize: bool = False) -> Target:
        """What files must be read as, for this model."""
        return Target(self.input_shape, self.fitted_normalization.scale, resize, self.encoder)

    # Learning

    def check_task(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The inputs and labels of a task in types to learn from. Raises `DataError` if the model cannot learn them."""
        x, y = self.check_inputs(x), check_labels(y, "y")
        if len(x) != len(y):
            raise DataError(f"{len(x)} samples and {len(y)} labels; give one label per sample")
        if not len(x):
            raise DataError("there are no samples")
        if self.normalization is not None and looks_scaled(x, self.normalization.scale):
            what = "the values lie between 0 and 1, and the model learned from bytes (0 to 255)"
            raise DataError(f"{what}; multiply them by 255")
        check_same_type(np.unique(y).tolist(), self.classes)
        return x, y

    def learn(
        self,
        x: Array,
        y: Array,
        *,
        sample_weight: Array | None = None,
        config: ModelConfig | None = None,
        on_batch: Callable[[int, int], None] = lambda done, total: None,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> None:
        """Learn a task: raw inputs, and their labels. If it fails or is interrupted, the model is as it was.

        Samples of classes that the model knows already are no part of the task: what is kept of these classes is
        updated, which takes no space (see the setting `known_classes`). If all are, there is no new task.
        `sample_weight` has a weight for each sample, at least 0.
        `config` is what this and later tasks are learned with, if that differs from before; see `check_change`.
        """
        x, y = self.check_task(x, y)
        changed = self
        if config is not None and config != self.config:
            check_change(self.config, config)
            changed = replace(self, config=config, tasks=list(self.tasks))
        x, y, weight = apply_weights(x, y, sample_weight)
        if weight is not None and not self.method.uses_weights:
            reason = f"{self.config.method} counts all samples the same; leave them out, or choose another method"
            raise SettingsError(reason, setting="sample_weight")
        preprocessing = resolve_preprocessing(changed.config.preprocessing, x)
        normalization = self.normalization or Normalization.fit(thin(x), preprocessing)
        known = find_outputs(changed, x, y)
        new = known < 0
        if bool(new.any()) and self.method.needs_old_data and self.tasks:
            raise old_data_error(self.config.method)
        labels, numbers = np.unique(y[new], return_inverse=True)
        hardware, first = find_hardware(changed.config.training), len(self.outputs)
        known[new] = numbers.reshape(-1) + first
        samples = Samples(normalize(normalization, x), torch.from_numpy(known), False, x.dtype.itemsize, weight)
        # The first task trains the method itself, which nothing else has used; later ones a copy of it.
        untouched = not self.tasks and changed is self and hardware.device.type == "cpu"
        method = self.method if untouched else changed.build(hardware.device, self.method)
        try:
            with use_threads(changed.config.training.threads):
                if not new.all():
                    method.update(samples.take(torch.from_numpy(~new)), changed.config.training)
                if new.any():
                    own = samples if new.all() else samples.take(torch.from_numpy(new))
                    classes = range(first, first + len(labels))
                    task = Task(len(self.tasks), tuple(labels.tolist()), classes, InMemory(own))
                    train_task(method, task, changed.config.training, hardware, on_batch, on_epoch)
                    warn_of_space(method, len(labels))
        except BaseException:
            if untouched:
                self.method = self.build()
            raise
        self._change(
            method=method if hardware.device.type == "cpu" else changed.build(CPU, method),
            config=changed.config if self.tasks else replace(changed.config, preprocessing=preprocessing),
            normalization=normalization,
            tasks=[*self.tasks, tuple(labels.tolist())] if new.any() else self.tasks,
        )

    def _change(self, **values: Any) -> None:
        """Give these attributes new values, and keep the model as it was for `undo`: one version, the network's."""
        before = None
        if self.tasks:  # the first task trains the method itself
            before = copy.copy(self)
            before._before = None
        for name, value in values.items():
            setattr(self, name, value)
        self._before = before

    # Editing

    def rename(self, old: Label, new: Label) -> None:
        """Give a class another label. Nothing else changes. A label that exists already is an error: see `merge`."""
        metrics = {name: value for name, value in self.metrics.items() if name != "tasks"}  # has the old label
        self._change(tasks=rename(self.tasks, old, new), metrics=metrics)

    def merge(self, labels: Sequence[Label], into: Label) -> None:
        """Make one class of several. Its probability is the sum of theirs; the network stays as it is.

        `into` may be one of them, another class, or a new label. What a run measured with separate classes is dropped.
        """
        self._change(tasks=merge(self.tasks, labels, into), metrics={})

    def forget(self, label: Label, *, keep_undo: bool = False) -> None:
        """Remove a class: its outputs with all connections into them, and what else is kept of it alone.

        The units of a task that has no other classes become free again unless other tasks read them. All numbers that
        belong to other classes keep their bits, and so do their scores: until the next task is learned, predictions are
        computed with matrices as large as before (see `spacenet.methods.shared.places`). Class statistics
        (spacenet-density) share the probability of a task anew among its classes.

        What was computed from all classes of a task together stays: hidden connections while other classes of the task
        need them, the scale of features, a pooled covariance, correlations of random features, and bounds of inputs.
        The version with the class is not kept for `undo` unless `keep_undo` says so.
        """
        wanted = find_class(label, self.classes)
        outputs = torch.tensor([number for number, each in enumerate(self.outputs) if same(each, wanted)])
        if len(self.classes) == 1:
            raise SettingsError(f"{wanted!r} is the only class of this model, and a model needs one.")
        method = self.build(CPU, self.method)
        method.remove_classes(outputs)
        tasks = [tuple(each for each in task if not same(each, wanted)) for task in self.tasks]
        self._change(method=method, tasks=tasks, metrics={})
        self._before = self._before if keep_undo else None

    def compact(self) -> None:
        """Drop what no output reads: connections that lead nowhere, the units reserved for them, and units that were
        added and are not used. Predictions keep their bits; later tasks have more space."""
        method = self.build(CPU, self.method)
        method.compact()
        self._change(method=method)

    def undo(self) -> None:
        """Undo the last change in this process: a task learned or a class edited. There is one step.

        What a file held before is beside that file; see `spacenet.model.journal`.
        """
        if self._before is None:
            raise SettingsError(
                "there is nothing to undo: this model has not changed since it was made or loaded, or it was undone.",
                python="What a command changed in a file: spacenet edit MODEL undo",
            )
        self.__dict__ = {**self._before.__dict__, "origin": self.origin}

    def space_left(self) -> int | None:
        """How many more tasks like the last one the free space holds, at most 100; None for methods that do not divide
        a network among tasks."""
        return self.method.space_left(next((len(task) for task in reversed(self.tasks) if task), 2))


FIXED_SETTINGS = (
    *("representation", "components", "directions", "pooled_covariance"),
    *("balance", "replay", "replay_components", "replay_directions"),
    *("first_epochs", "first_selected", "first_reserved", "first_connections"),
    *("rotations", "statistics_weight", "own_statistics_weight", "mirror", "random_features", "exact_updates"),
    *("width", "column", "modules", "active", "buffer_size", "compensation", "generator_hidden", "latent", "power"),
)
"""Settings that decide what has been kept of the classes learned so far, or that only concern the first task."""


def check_change(old: ModelConfig, new: ModelConfig) -> None:
    """Raise `SettingsError` for a setting that cannot change once a task is learned."""
    before, after = (
        {"method": config.method, "seed": config.seed, "net": config.net.name, **config.flat()} for config in (old, new)
    )
    for name in ("method", "seed", "net", "hidden", "init", *PreprocessingConfig.__dataclass_fields__, *FIXED_SETTINGS):
        if before.get(name) != after.get(name):
            raise fixed_setting_error(name)
    if {before.get("rotations"), after.get("rotations")} == {"none", "first"}:  # too late for the first task
        raise fixed_setting_error("rotations")


def old_data_error(method: str) -> SettingsError:
    """Why a model of a method that trains on all data cannot learn on."""
    remedy = "Train a new model on all of it with {}, or choose a method that learns from new data alone."
    return SettingsError(
        f"{method} can only continue with all old data, which a model does not hold.",
        cli=remedy.format("spacenet run or spacenet fit"),
        python=remedy.format("spacenet.run or fit"),
    )


def fixed_setting_error(setting: str) -> SettingsError:
    return SettingsError("cannot change after the first task is learned; fit a new model instead", setting=setting)
