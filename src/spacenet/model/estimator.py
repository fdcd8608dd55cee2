"""`SpaceNetClassifier`: a scikit-learn estimator that gains classes call by call."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from spacenet.config.plain import from_plain
from spacenet.config.training import TrainingConfig
from spacenet.data.preprocessing import Array, NormalizationSpec
from spacenet.errors import SettingsError
from spacenet.methods.shared.sparse_settings import SparseSettings
from spacenet.model.file import from_bytes, load_model, save_model, to_bytes
from spacenet.model.model import Model, Recipe, method_to_use
from spacenet.nets import MLP, SMALL_CNN, NetConfig
from spacenet.space.expansion import AUTO
from spacenet.training.loop import Epoch

Several = Sequence[float] | float | None
SUMMARIES = ("representation", "components", "directions", "shrinkage", "sharpness", "network_weight")
"""Parameters of methods that keep a summary of each class."""
STEPS, LEAST_EPOCHS, MOST_EPOCHS = 600, 4, 100


class SpaceNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns new classes one task after another in a network of fixed size, without keeping old data.

    Each call of `partial_fit` is a task: it gets its own part of the network, and what earlier tasks reserved never
    changes again. Prediction needs no word on the task. `fit` forgets everything and learns one task.

    Parameters
    ----------
    method : "spacenet-density", "spacenet" or "static-sparse"
        How it learns. The default keeps a small statistical summary of each class beside the network, to tell tasks
        apart; "spacenet" is the paper's method, which keeps the network alone.
    net : "auto", "mlp", "small-cnn", "resnet-18" or "wrn-DEPTH-WIDTH"
        The network. "auto" takes the small CNN for images of shape (n, c, h, w), else the MLP.
    hidden : sequence of int, optional
        Units of each hidden layer; default 400, 400 (mlp) or 32, 32, 64, 64, 512 (small-cnn).
    expected_tasks : int
        Sizes of selection, reservation and connections follow from it unless they are given.
    when_full : "error" or "expand"
        What to do when the network has no room for a task: raise `SpaceFull`, or add units.
    selected, reserved, connections, phantom_classes, unused_first, rewire_fraction : optional
        What a task may use of the network, as `spacenet run --help` explains it.
    representation, components, directions, shrinkage, sharpness, network_weight : optional
        What "spacenet-density" keeps of each class and how it counts, as `spacenet run --help` explains it.
    epochs, batch_size, learning_rate, momentum, weight_decay, optimizer, augment, bn_recalibration_epochs
        How a task is trained. By default as many epochs as make about 600 steps with the first task (4 to 100); the
        learning rate is 0.02 for the MLP and 0.1 for others.
    scale, mean, std, centering
        What is done to inputs: (x · scale − mean) / std. By default bytes are divided by 255; the mean is a mixture of
        one number and of each feature's own, as much as `centering` says; and the spread is that of each feature, or
        one number for bytes and images. It is measured on the first task.
    device, precision, threads
        Where and how to compute.
    random_state : int, RandomState or None
        Everything random follows from it. The default gives the same model every time.
    verbose : bool
        Print a line per epoch.

    Attributes
    ----------
    classes_ : array
        The labels, in the order in which they came (sorted within a task). Labels of any type may be added later.
    n_features_in_ : int
        Features of a sample; for images the length of their first axis.
    space_left_ : int
        How many more tasks like the last one fit, at most 100.
    tasks_ : list of tuples
        The labels of each task.
    model_ : Model
        The network and all that belongs to it.
    """

    model_: Model

    def __init__(
        self,
        *,
        method: str = "spacenet-density",
        net: str = "auto",
        hidden: Sequence[int] | None = None,
        expected_tasks: int = 5,
        when_full: Literal["error", "expand"] = "error",
        selected: Several = None,
        reserved: Several = None,
        connections: Several = None,
        phantom_classes: int | None = None,
        unused_first: bool = True,
        rewire_fraction: float = 0.3,
        representation: Literal["auto", "inputs", "edges", "features"] | None = None,
        components: int | None = None,
        directions: int | None = None,
        shrinkage: float | None = None,
        sharpness: float | None = None,
        network_weight: float | None = None,
        epochs: int | None = None,
        batch_size: int = 32,
        learning_rate: float | None = None,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        optimizer: Literal["sgd", "adam"] = "sgd",
        augment: Literal["none", "crop-flip"] = "none",
        bn_recalibration_epochs: int = 1,
        scale: float | None = None,
        mean: Several = None,
        std: Several = None,
        centering: float = 0.7,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        precision: Literal["32", "bf16"] = "32",
        threads: int = 1,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.net, self.hidden, self.expected_tasks, self.when_full = net, hidden, expected_tasks, when_full
        self.selected, self.reserved, self.connections = selected, reserved, connections
        self.phantom_classes, self.unused_first, self.rewire_fraction = phantom_classes, unused_first, rewire_fraction
        self.representation, self.components, self.directions = representation, components, directions
        self.shrinkage, self.sharpness, self.network_weight = shrinkage, sharpness, network_weight
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.momentum, self.weight_decay, self.optimizer = momentum, weight_decay, optimizer
        self.augment, self.bn_recalibration_epochs = augment, bn_recalibration_epochs
        self.scale, self.mean, self.std, self.centering = scale, mean, std, centering
        self.device, self.precision, self.threads = device, precision, threads
        self.random_state, self.verbose = random_state, verbose

    # Learning

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Forget everything and learn all classes of y as one task."""
        return self._learn(X, y, anew=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:  # noqa: N803
        """Learn one more task. Its labels may be new or known; `classes` is not needed and not looked at."""
        return self._learn(X, y, anew=not hasattr(self, "model_"))

    def _learn(self, X: Any, y: Any, *, anew: bool) -> Self:  # noqa: N803
        x, labels = validate_data(self, X, y, reset=anew, allow_nd=True, dtype="numeric")
        check_classification_targets(labels)
        model = self._new_model(x) if anew else self.model_
        model.learn(x, labels, on_epoch=_print_epoch if self.verbose else lambda epoch: None)
        self.model_ = model
        return self

    def _new_model(self, x: Array) -> Model:
        """A model for samples of this shape that has learned nothing."""
        if self.when_full not in ("error", "expand"):
            raise SettingsError(f"when_full: {self.when_full!r} is not a way; there are error, expand")
        image = x.ndim == 4
        name = (SMALL_CNN if image else MLP) if self.net == "auto" else self.net
        net = from_plain(NetConfig, {"net": name, "hidden": _listed(self.hidden or ())})
        recipe = Recipe(
            self.method,
            _seed(self.random_state),
            net,
            self._training(name, len(x)),
            self._options(name),
            tuple(x.shape[1:]),
        )
        return Model(recipe, self._constants(x))

    def _options(self, net: str) -> SparseSettings:
        """The method's own settings."""
        kind = method_to_use(self.method)
        several = {"selected": self.selected, "reserved": self.reserved, "connections": self.connections}
        options: dict[str, Any] = {
            **{key: _listed(() if value is None else value) for key, value in several.items()},
            "expected_tasks": self.expected_tasks,
            "phantom_classes": (8 if net == MLP else 0) if self.phantom_classes is None else self.phantom_classes,
            "unused_first": self.unused_first,
            "expand": AUTO if self.when_full == "expand" else None,
        }
        known = {field.name for field in dataclasses.fields(kind.Settings)}
        if "rewire_fraction" in known:
            options["rewire_fraction"] = self.rewire_fraction
        for name in SUMMARIES:
            value = getattr(self, name)
            if value is not None and name not in known:
                raise SettingsError(f"{name}: {self.method} has no such setting; method='spacenet-density' has")
            if value is not None:
                options[name] = value
        return from_plain(kind.Settings, options)

    def _training(self, net: str, samples: int) -> TrainingConfig:
        rate = self.learning_rate
        return TrainingConfig(
            epochs=epochs_for(samples, self.batch_size) if self.epochs is None else self.epochs,
            batch_size=self.batch_size,
            learning_rate=(0.02 if net == MLP else 0.1) if rate is None else rate,
            optimizer=self.optimizer,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            augment=self.augment,
            bn_recalibration_epochs=self.bn_recalibration_epochs,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
        )

    def _constants(self, x: Array) -> NormalizationSpec:
        pixels = x.dtype == np.uint8
        scale = (1 / 255 if pixels else 1.0) if self.scale is None else self.scale
        each = not pixels and x.ndim == 2
        return NormalizationSpec(scale, _constant(self.mean), _constant(self.std), self.centering, each_feature=each)

    # Using it

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each sample."""
        chosen = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class, (n, classes), with columns as in `classes_`."""
        check_is_fitted(self, "model_")
        x = validate_data(self, X, reset=False, allow_nd=True, dtype="numeric")
        return self.model_.probabilities(x)

    @property
    def classes_(self) -> Array:
        labels = self._fitted().classes
        kinds = {type(label) for label in labels}
        return np.array(labels, dtype=object if len(kinds) > 1 else None)

    @property
    def tasks_(self) -> list[tuple[Any, ...]]:
        return list(self._fitted().tasks)

    @property
    def space_left_(self) -> int:
        return self._fitted().space_left()

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise AttributeError("the classifier has learned nothing yet: call fit or partial_fit first")
        return self.model_

    # Files

    def save(self, path: str | Path) -> None:
        """Write the model to a file, as a whole or not at all. `spacenet.load` reads it, and goes on learning."""
        check_is_fitted(self, "model_")
        save_model(Path(path), self.model_)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = to_bytes(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = {**state, "model_": from_bytes(state["model_"])}
        super().__setstate__(state)


def load(path: str | Path) -> SpaceNetClassifier:
    """The classifier in a model file: one that was saved, or that `spacenet run` wrote. It can go on learning."""
    model = load_model(Path(path))
    recipe, options, training = model.recipe, model.recipe.options, model.recipe.training
    own = {name: getattr(options, name) for name in ("rewire_fraction", *SUMMARIES) if hasattr(options, name)}
    classifier = SpaceNetClassifier(
        method=recipe.method,
        net=recipe.net.net,
        hidden=recipe.net.hidden or None,
        expected_tasks=options.expected_tasks,
        when_full="expand" if options.expand == AUTO else "error",
        selected=options.selected or None,
        reserved=options.reserved or None,
        connections=options.connections or None,
        phantom_classes=options.phantom_classes,
        unused_first=options.unused_first,
        epochs=training.epochs,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        optimizer=training.optimizer,
        augment=training.augment,
        bn_recalibration_epochs=training.bn_recalibration_epochs,
        device=training.device,
        precision=training.precision,
        threads=training.threads,
        scale=model.normalization_spec.scale,
        random_state=recipe.seed,
        **own,
    )
    classifier.model_ = model
    classifier.n_features_in_ = recipe.input_shape[0]
    return classifier


def epochs_for(samples: int, batch_size: int) -> int:
    """Epochs that make about `STEPS` steps: few samples need more of them, many need not all be seen so often."""
    return min(max(STEPS // max(1, math.ceil(samples / max(1, batch_size))), LEAST_EPOCHS), MOST_EPOCHS)


def _seed(state: Any) -> int:
    """A number as it is; of what else scikit-learn takes, a number drawn from it."""
    if isinstance(state, (int, np.integer)) and not isinstance(state, bool) and state >= 0:
        return int(state)
    return int(check_random_state(state).randint(2**31))


def _listed(values: Any) -> list[Any]:
    return np.atleast_1d(np.asarray(values)).tolist() if np.size(values) else []


def _constant(value: Several) -> float | tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(map(float, value)) if isinstance(value, Sequence | np.ndarray) else float(value)


def _print_epoch(epoch: Epoch) -> None:
    done = f"task {epoch.task + 1}, epoch {epoch.epoch + 1}/{epoch.epochs}"
    print(f"{done}: loss {epoch.loss:.4f}, training accuracy {epoch.accuracy:.1f} %", flush=True)
