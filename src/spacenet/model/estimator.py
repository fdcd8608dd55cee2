"""`SpaceNetClassifier`: a scikit-learn estimator that gains classes call by call.

Its parameters are the settings of `ModelConfig`, by their own names: they are declared where the settings are, with
their bounds and texts, and nowhere else.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import nn

from spacenet.config.model import (
    AUTO,
    ModelConfig,
    merge,
    settings_of,
    settings_type,
    sort_into_sections,
    unknown_setting,
)
from spacenet.config.presets import preset_config
from spacenet.config.settings import field_types, to_plain
from spacenet.config.stream import CUSTOM
from spacenet.data.checks import move_channels
from spacenet.data.preprocessing import Array
from spacenet.encoders.inputs import gather
from spacenet.encoders.loading import encoder_name, load_encoder
from spacenet.encoders.weights import restore_module
from spacenet.errors import SettingsError
from spacenet.methods import get_method
from spacenet.model.declared import declare_classes, expected_tasks
from spacenet.model.estimator_doc import document
from spacenet.model.file import from_bytes, load_model, save_model, to_bytes
from spacenet.model.labels import Label
from spacenet.model.model import Model, fixed_setting_error
from spacenet.model.parameters import METHODS, setting_parameters
from spacenet.model.unknown import check_rate, unknown_label
from spacenet.nets import net_name

NEEDS_ENCODER = (
    'the samples are texts or arrays of different lengths; give an encoder, e.g. "all-minilm-l6-v2" for texts'
)


class SpaceNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # noqa: D101, its docstring is below
    model_: Model
    _params_before: dict[str, Any]
    _declared: list[Label] | None = None
    """The classes that the first call of `partial_fit` declared."""

    def __init__(self, **params: Any) -> None:
        given = inspect.signature(type(self)).bind(**params)
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    # Learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Forget everything and learn all classes of y as one task. Statistics and the network's loss count each sample
        with its weight, if there are any; a weight of 0 leaves it out."""
        return self._learn(X, y, sample_weight, anew=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from more samples: those of new classes are one more task, those of known ones update what is kept of
        their class, which takes no space. `classes` of the first call, if they are given, are all that may ever come;
        the space is divided so that each of those that are not in the first call may be a task of its own."""
        return self._learn(X, y, sample_weight, classes, anew=not hasattr(self, "model_"))

    def _learn(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        classes: Any = None,
        *,
        anew: bool,
    ) -> Self:
        before = dict(self.__dict__)
        try:
            return self._learn_task(X, y, sample_weight, classes, anew=anew)
        except BaseException:
            self.__dict__ = before  # validate_data has noted the features of what was not learned
            raise

    def _learn_task(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        classes: Any,
        *,
        anew: bool,
    ) -> Self:
        x, labels = self._check_task(X, y, anew=anew)
        check_classification_targets(labels)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, labels, dtype=np.float64)
        self._declared = declare_classes(None if anew else self._declared, classes, labels, first=anew)
        model = self.new_model(x, expected_tasks(self._declared, labels)) if anew else self.model_
        config, params = None if anew else self._changed_config(), getattr(self, "_learned_params", {})
        show = (lambda epoch: print(epoch.describe(), flush=True)) if self.verbose else (lambda epoch: None)
        model.learn(x, labels, sample_weight=weight, config=config, on_epoch=show)
        self.model_ = model
        self._params_before, self._learned_params = params, self._plain_params()
        return self

    def _check_task(self, X: Any, y: Any, *, anew: bool) -> tuple[Array, Array]:  # noqa: N803
        """The samples and labels of a task as arrays."""
        x = self._gather(X)
        if x is not None:
            labels = column_or_1d(y, dtype=None)
            check_consistent_length(x, labels)
            self.n_features_in_ = load_encoder(str(encoder_name(self.encoder))).features
            return x, labels
        # Images for an encoder may have any size, and may have been encoded already.
        x, labels = validate_data(self, X, y, reset=anew or self.encoder is not None, allow_nd=True, dtype="numeric")
        return move_channels(x, "X"), labels

    def _gather(self, X: Any) -> Array | None:  # noqa: N803
        """Texts, or sounds of different lengths, for the encoder; None for arrays of numbers."""
        found = gather(X)
        if found is not None and self.encoder is None:
            raise SettingsError(NEEDS_ENCODER, setting="encoder")
        if found is None and self.encoder is not None:
            x = np.asarray(X)
            if x.dtype.kind not in "biuf" or x.ndim < 2:  # neither samples nor features
                load_encoder(str(encoder_name(self.encoder))).check(x)
        return found

    def new_model(self, x: Array, tasks: int | None = None) -> Model:
        """A model with these settings for inputs like x, which has learned nothing yet. `tasks` is how many to expect
        at least, where the settings do not say it."""
        get_method(self.method)
        names: dict[str, Any] = {"net": {"name": net_name(self.net)}, "seed": _seed(self.random_state)}
        if tasks is not None and self.expected_tasks is None and self.method in METHODS:
            names["method"] = {"expected_tasks": tasks}
        given = merge(sort_into_sections(self.method, self._settings()), self._method_section(), names)
        name, shape = encoder_name(self.encoder), tuple(x.shape[1:])
        return Model(preset_config(CUSTOM, self.method, given).model, (load_encoder(name).features,) if name else shape)

    def _plain_params(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.get_params().items()}

    def _settings(self) -> dict[str, Any]:
        """The settings that are given (not None), as plain values; those of other methods must be at their default."""
        values = {}
        for name, parameter in setting_parameters().items():
            value = encoder_name(self.encoder) if name == "encoder" else getattr(self, name)
            if not parameter.belongs_to(self.method):
                if _plain(value) != _plain(parameter.default):
                    reason = f"{self.method} has no such setting; {parameter.methods[0]} has"
                    if self.method not in METHODS and name in settings_of(self.method):
                        reason = f"settings of {self.method} are given as method_settings={{{name!r}: …}}"
                    raise SettingsError(reason, setting=name)
            elif value is not None or type(None) not in get_args(parameter.hint):
                values[name] = _plain(value)
        return values

    def _method_section(self) -> dict[str, Any]:
        """The settings that are given as `method_settings`, in their section."""
        given = self.method_settings or {}
        if not isinstance(given, Mapping) or (given and self.method in METHODS):
            reason = f"the settings of {self.method} are parameters of their own"
            raise SettingsError(reason if isinstance(given, Mapping) else "not a dict", setting="method_settings")
        for name in given:
            if settings_of(self.method).get(name) != "method":
                raise unknown_setting(name, [self.method], field_types(settings_type(self.method)))
        return {"method": _plain(given)}

    def _changed_config(self) -> ModelConfig:
        """The configuration of the fitted model with what `set_params` has changed since the last task."""
        config, before, now = self.model_.config, self._learned_params, self._plain_params()
        changed = [name for name, value in now.items() if value != before[name]]
        for name in ("method", "random_state"):
            if name in changed:
                raise fixed_setting_error(name)
        if net_name(self.net) not in (AUTO, config.net.name):
            raise fixed_setting_error("net")
        known, given = setting_parameters(), self._settings()
        values = sort_into_sections(
            config.method, {name: given.get(name, known[name].default) for name in changed if name in known}
        )
        if "method_settings" in changed:
            usual = to_plain(preset_config(CUSTOM, config.method).model.method_settings)
            values = merge(values, {"method": usual}, self._method_section())
        return ModelConfig.from_plain(merge(config.to_plain(), values))

    # Predicting

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each sample; with `unknown`, `unknown_label` for those that are like no class."""
        (model, x), rate = self._prepare(X), check_rate(self.unknown)
        if rate is None:
            return np.asarray(self.classes_[model.predict_proba(x).argmax(1)])
        classes = _label_array([*model.classes, unknown_label(model.classes, self.unknown_label)])
        known = model.typicality(x) >= rate
        found = np.full(len(x), len(classes) - 1)
        if known.any():
            found[known] = model.predict_proba(x[known]).argmax(1)
        return np.asarray(classes[found])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class, (n, classes), with columns as in `classes_`."""
        model, x = self._prepare(X)
        return model.predict_proba(x)

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """The log-probability of each class, (n, classes), as scikit-learn's classifiers have it, not its outlier
        detectors: of two classes, (n,), that of the second less that of the first."""
        model, x = self._prepare(X)
        found = model.class_scores(x)
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """How typical each sample is of the class that it is most like, (n,): about the fraction of the class's own
        samples that are less typical. With ``unknown=0.05``, `predict` calls those below 0.05 unknown."""
        model, x = self._prepare(X)
        return model.typicality(x)

    def predict_set(self, X: Any, coverage: float = 0.9) -> Array:  # noqa: N803
        """Which classes each sample may be of, (n, classes), as booleans with columns as in `classes_`: conformal sets,
        as MAPIE's ``y_ps``. About the fraction `coverage` of the samples of each class have it in their set, also after
        later tasks. A set is empty where a sample is like no class."""
        model, x = self._prepare(X)
        return model.predict_set(x, coverage)

    def _prepare(self, X: Any) -> tuple[Model, Array]:  # noqa: N803
        """The model, and samples as it takes them. Raises an error if the classifier is not fitted."""
        check_is_fitted(self, "model_")
        x = self._gather(X)
        if x is None and self.encoder is None:
            x = validate_data(self, X, reset=False, allow_nd=True, dtype="numeric")
        elif x is None:
            x = check_array(X, allow_nd=True, dtype="numeric")
        return self.model_, np.asarray(x)

    @property
    def classes_(self) -> Array:
        return _label_array(self._fitted().classes)

    @property
    def tasks_(self) -> list[tuple[Any, ...]]:
        return list(self._fitted().tasks)

    @property
    def space_left_(self) -> int | None:
        return self._fitted().space_left()

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise AttributeError("this classifier is not fitted yet: call fit or partial_fit first")
        return self.model_

    # Editing

    def rename(self, old: Any, new: Any) -> Self:
        """Give a class another label. A label that exists already is an error: see `merge`."""
        return self._edit(lambda model: model.rename(old, new))

    def merge(self, labels: Sequence[Any], into: Any) -> Self:
        """Make one class of several: its probability is the sum of theirs. `into` may be one of them or a new label."""
        return self._edit(lambda model: model.merge(labels, into))

    def forget(self, label: Any, *, keep_undo: bool = False) -> Self:
        """Remove a class and what is kept of it alone; other classes keep their numbers (see `Model.forget`). This
        cannot be undone unless `keep_undo` says so."""
        return self._edit(lambda model: model.forget(label, keep_undo=keep_undo))

    def compact(self) -> Self:
        """Drop what no output reads; predictions keep their bits (see `Model.compact`)."""
        return self._edit(lambda model: model.compact())

    def undo(self) -> Self:
        """Undo the last task or edit in this process; there is one step. A task's changed parameters stay changed."""
        check_is_fitted(self, "model_")
        self.model_.undo()
        self._learned_params = self._params_before
        return self

    def _edit(self, change: Callable[[Model], None]) -> Self:
        check_is_fitted(self, "model_")
        change(self.model_)
        self._params_before = self._learned_params
        return self

    # Files

    def save(self, path: str | Path, include_encoder: bool | None = None) -> None:
        """Write the model to a file, as a whole or not at all; `spacenet.load` reads it.

        With `include_encoder`, the encoder's weights are in the file too, so that it can be used where they are not
        installed. By default they are if they were in the file that the model was loaded from.
        """
        check_is_fitted(self, "model_")
        if include_encoder is not None:
            self.model_.include_encoder(include_encoder)
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


def load(path: str | Path, encoder: Any = None) -> SpaceNetClassifier:
    """Load the classifier in a model file: one that was saved, or the one of a run. It can learn more tasks.

    All its parameters are those that the model was made with, so that ``clone(load(path))`` makes the same model again.

    Parameters
    ----------
    path : str or Path
        A model file.
    encoder : torch.nn.Module or Encoder, optional
        The model's encoder, where that is not a package's or a file's. A module gets the weights that are in the file,
        if there are any.

    Returns
    -------
    SpaceNetClassifier

    Examples
    --------
    >>> import tempfile, spacenet
    >>> folder = tempfile.mkdtemp()
    >>> result = spacenet.run("split-digits", epochs=2, tasks="0,1/2,3", out=f"{folder}/run", progress=False)
    >>> classifier = spacenet.load(f"{folder}/run/model.safetensors")
    >>> classifier.classes_
    array([0, 1, 2, 3])
    """
    model = load_model(Path(path))
    if model.encoder_weights is not None and isinstance(encoder, nn.Module):
        restore_module(encoder, model.encoder_weights)
    name = encoder_name(encoder)
    if name is not None:
        load_encoder(name, model.config.preprocessing.encoder_checksum)
        model.config = replace(model.config, preprocessing=replace(model.config.preprocessing, encoder=name))
    config, known = model.config, setting_parameters()
    given = {name: value for name, value in config.flat().items() if name in known}
    given |= {name: p.default for name, p in known.items() if not p.belongs_to(config.method)}
    given |= {"method": config.method, "net": config.net.name, "random_state": config.seed}
    if config.method not in METHODS:
        given["method_settings"] = to_plain(config.method_settings)
    classifier = SpaceNetClassifier(**given)
    classifier.model_ = model
    classifier.n_features_in_ = model.input_shape[0]
    classifier._learned_params = classifier._params_before = classifier._plain_params()
    return classifier


def _label_array(labels: list[Label]) -> Array:
    """Labels as an array; those of different types stay what they are."""
    return np.array(labels, dtype=object if len(set(map(type, labels))) > 1 else None)


def _seed(state: Any) -> int:
    """A number as it is; from anything else that scikit-learn takes, a number is drawn."""
    if isinstance(state, (int, np.integer)) and not isinstance(state, bool) and state >= 0:
        return int(state)
    return int(check_random_state(state).randint(2**31))


def _plain(value: Any) -> Any:
    """Numpy's scalars and arrays, sequences and mappings as plain numbers, lists and dicts."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


document(SpaceNetClassifier)
