"""A model as a folder that MLflow serves, registers and loads: the model file, a signature, an example, requirements.

Nothing in it is pickled. MLflow imports this module where the model is loaded, and has it read the model file, which is
checked as always.
"""

import logging
import os
import re
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spacenet import __version__
from spacenet.data.checks import PIXEL_SCALE
from spacenet.data.preprocessing import Array
from spacenet.encoders.efficientnet import LITES
from spacenet.encoders.inputs import TextInput
from spacenet.encoders.sounds import SPEECH
from spacenet.encoders.texts import MINILM
from spacenet.errors import FileError, SettingsError, SpacenetError
from spacenet.model.exported_part import random_image
from spacenet.model.file import load_model, make_probe, to_bytes
from spacenet.model.model import Model
from spacenet.model.unknown import check_rate, unknown_label
from spacenet.utils.extras import DISTRIBUTION, require_extra
from spacenet.utils.files import atomic_folder

FILE = "model.safetensors"
EXTRAS = {**dict.fromkeys(LITES, "encoders"), MINILM: "texts", SPEECH: "audio"}
"""What an encoder needs to be installed."""
EXAMPLES = 2
METHODS = ("predict", "predict_proba")


class LoadedModel:
    """What `mlflow.pyfunc.load_model` wraps."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> Array:
        """The label of each sample, or its probabilities.

        `params` may have `method`, "predict" or "predict_proba", and `unknown`: samples that are like no class are
        called unknown, at a threshold where this fraction of samples of known classes is called so too; 0 for none.
        """
        given = params or {}
        method, rate = given.get("method", METHODS[0]), check_rate(given.get("unknown") or None)
        if method not in METHODS:
            raise SettingsError(f"{method!r} is not possible; choose from {', '.join(METHODS)}", setting="method")
        x = np.asarray(data)
        if method == "predict_proba":
            return self.model.predict_proba(x)
        labels = self.model.predict(x)
        if rate is not None:
            label, known = unknown_label(self.model.classes), self.model.typicality(x) >= rate
            labels = [each if typical else label for each, typical in zip(labels, known.tolist(), strict=True)]
        return _label_array(labels)


def _load_pyfunc(path: str) -> LoadedModel:
    """What MLflow calls: the model in a file."""
    return LoadedModel(load_model(Path(path)))


def write_mlflow(model: Model, path: Path, unknown: float | None = None) -> Path:
    """Write a model as a folder for MLflow. It is loaded by MLflow and compared before it gets its name.

    Parameters
    ----------
    model : Model
    path : Path
        The folder to write; there must be none.
    unknown : float, optional
        The rate at which `predict` calls samples unknown unless it is given another.

    Returns
    -------
    Path
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing leaves this computer
    mlflow = require_extra("to mlflow", "mlflow", "mlflow.pyfunc")
    rate = check_rate(unknown) or 0.0
    if rate:
        model.method.detector  # noqa: B018 (raises an error where it cannot tell unknown samples)
    if path.exists():
        raise FileError(f"{path} is there already; remove it, or choose another name")
    example = _example(model)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.WARNING)  # MLflow says much
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        beside = stack.enter_context(atomic_folder(path))
        (scratch / FILE).write_bytes(to_bytes(model))
        mlflow.save_model(
            str(beside),
            loader_module=__name__,
            data_path=str(scratch / FILE),
            signature=_signature(model, rate),
            input_example=example,
            pip_requirements=_requirements(model),
            metadata={"spacenet": __version__, "method": model.config.method, "tasks": len(model.tasks)},
        )
        found = mlflow.load_model(str(beside)).predict(example)
        if list(found) != list(LoadedModel(model).predict(example, {"unknown": rate})):
            raise SpacenetError("the MLflow model does not answer like the model; nothing was exported")
    return path


def _signature(model: Model, rate: float) -> Any:
    types = require_extra("to mlflow", "mlflow", "mlflow.types")
    signatures = require_extra("to mlflow", "mlflow", "mlflow.models.signature")
    example, labels = _example(model), _label_array(model.classes)
    takes_images = model.encoder is not None and model.encoder.images is not None
    shape = (-1, 3, -1, -1) if takes_images else (-1, *example.shape[1:])
    outputs = [] if labels.dtype == object else [types.TensorSpec(np.dtype(labels.dtype.type), (-1,))]
    params = [
        types.ParamSpec("method", types.DataType.string, METHODS[0]),
        types.ParamSpec("unknown", types.DataType.double, rate),
    ]
    return signatures.ModelSignature(
        inputs=types.Schema([types.TensorSpec(np.dtype(example.dtype.type), shape)]),
        outputs=types.Schema(outputs) if outputs else None,
        params=types.ParamSchema(params),
    )


def _example(model: Model) -> Array:
    """Samples in the type that the model takes."""
    takes = model.encoder.takes if model.encoder is not None else None
    if isinstance(takes, TextInput):
        return np.array(["a text", "another text"])
    if model.encoder is not None and model.encoder.images is not None:
        rng = np.random.default_rng(0)
        return np.stack([random_image(rng, 32, 4) for _ in range(EXAMPLES)])
    raw = make_probe(model)[:EXAMPLES]
    if model.fitted_normalization.scale == PIXEL_SCALE:
        return raw.clip(0, 255).astype(np.uint8)
    return raw.astype(np.float64)


def _requirements(model: Model) -> list[str]:
    encoder = model.config.preprocessing.encoder or ""
    extra = f"[{EXTRAS[encoder]}]" if encoder in EXTRAS else ""
    own = [f"{DISTRIBUTION}{extra}=={__version__}"]
    if (library := encoder.partition(":")[0]) in ("timm", "torchvision"):
        own.append(f"{library}=={version(library)}")
    return [*own, *(f"{name}=={re.sub('[+].*', '', version(name))}" for name in ("torch", "numpy", "safetensors"))]


def _label_array(labels: list[Any]) -> Array:
    """Labels as an array that keeps their types."""
    return np.array(labels, dtype=None if len(set(map(type, labels))) == 1 else object)
