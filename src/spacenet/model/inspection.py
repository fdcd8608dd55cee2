"""What a model holds, in numbers: its space, its tasks, its sizes, what was measured."""

import math
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from spacenet import __version__
from spacenet.config.settings import to_plain
from spacenet.data.preprocessing import Normalization
from spacenet.encoders.licenses import find_license
from spacenet.errors import SettingsError
from spacenet.methods.density.densities import ClassMemory
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.selection import count_never_selected
from spacenet.space.ledger import FREE, Ledger
from spacenet.utils.text import format_bytes

FLOAT_BYTES = 4
FIGURES = ("acc", "bwt", "forgetting", "fwt", "ece")


@dataclass(frozen=True)
class LayerSpace:
    """Units of one hidden layer: unused, shared and reserved ones add up to all."""

    name: str
    units: int
    unused: int  # free, and nothing is connected to them
    never_selected: int | None  # by any task: what the paper calls unused; None where it cannot be told
    shared: int  # free and in use: later tasks may select them too
    reserved: int  # a task's own, for good
    several: int | None  # units, of any kind, to which several tasks have connections; None where it cannot be told
    connections: int  # those that lead into the layer


@dataclass(frozen=True)
class TaskSpace:
    """What one task learned, and what it has of the network."""

    number: int  # from 1
    classes: tuple[Label, ...]
    reserved: int  # units that are its own, in all hidden layers; 0 where the network is not divided
    connections: int


@dataclass(frozen=True)
class FileSizes:
    """Bytes."""

    file: int
    per_connection: float | None  # of the file, without what is kept of classes, where the network is divided
    packed: int  # what predicts: the small dense network, and what the method computes beside it
    ledger: int  # what is needed to learn more tasks
    dense: int  # all weights of the network if it were dense


@dataclass(frozen=True)
class Inspection:
    """Everything that `spacenet inspect` shows of a model."""

    method: str
    seed: int
    net: str
    hidden: tuple[int, ...]
    input_shape: tuple[int, ...]
    encoder: str | None
    """Its name and version, the beginning of its weights' SHA-256, and whether they are in the file."""
    encoder_license: str | None
    """As the packages that it comes from say."""
    normalization: str
    training: dict[str, Any]
    method_settings: dict[str, Any]
    classes: list[Label]
    layers: list[LayerSpace]
    tasks: list[TaskSpace]
    inputs: int
    inputs_used: int
    outputs: int
    outputs_connections: int
    connections: int
    weights: int  # numbers: more than connections where these are kernels
    tasks_left: int | None
    """More tasks like the last one; None where the method needs all old data to continue, or divides no network."""
    needs_old_data: bool
    """Whether the method can only continue with all old data."""
    divides_network: bool
    """Whether each task has its own part of the network."""
    class_memory: ClassMemory | None
    """What is kept of each class besides the network, of methods that describe classes."""
    sizes: FileSizes
    tells_unknown: bool
    """Whether it can say that a sample is like no class."""
    keeps_samples: bool
    """Whether the method keeps samples of earlier tasks in training."""
    samples_kept: int
    """Of these, how many the file holds."""
    versions: dict[str, str]
    """Of spacenet and the libraries that it computes with, here."""
    measured: dict[str, float]  # accuracy and the like, in percent
    task_accuracies: list[float]  # of each task, if that was measured after the last one
    measured_on: str
    measured_after: int | None  # tasks that were learned when it was measured
    chosen_settings: dict[str, float] = field(default_factory=dict)
    """Settings that are auto, with the values that the method chose."""


def inspect_model(model: Model, file_bytes: int) -> Inspection:
    """The figures of a model; `file_bytes` is the size of its file."""
    config, method, space = model.config, model.method, _inspect_space(model)
    usage = method.layer_usage()
    return Inspection(
        method=config.method,
        seed=config.seed,
        net=config.net.name,
        hidden=tuple(layer.units for layer in usage[:-1]),
        input_shape=model.input_shape,
        encoder=_describe_encoder(model),
        encoder_license=find_license(encoder) if (encoder := config.preprocessing.encoder) else None,
        normalization=_describe(model.fitted_normalization),
        training=to_plain(config.training),
        method_settings=to_plain(config.method_settings),
        classes=model.classes,
        layers=space.layers,
        tasks=space.tasks,
        inputs=method.blueprint.input.size,
        inputs_used=space.inputs_used,
        outputs=len(model.outputs),
        outputs_connections=usage[-1].connections if usage else 0,
        connections=sum(layer.connections for layer in usage),
        weights=space.weights,
        tasks_left=None if method.needs_old_data else model.space_left(),
        needs_old_data=method.needs_old_data,
        divides_network=method.divides_network,
        class_memory=method.class_memory(model.input_shape),
        sizes=_sizes(model, file_bytes),
        tells_unknown=_tells_unknown(model),
        keeps_samples=method.needs_old_data or len(method.memory) > 0,
        samples_kept=0 if method.needs_old_data else len(method.memory),
        versions={"spacenet": __version__, **{name: version(name) for name in ("torch", "numpy")}},
        task_accuracies=_task_accuracies(model),
        chosen_settings=method.chosen_settings,
        **_measured(model.metrics),
    )


@dataclass(frozen=True)
class _Space:
    """What is found in the ledger, or where there is none in the network as a whole."""

    layers: list[LayerSpace]
    tasks: list[TaskSpace]
    inputs_used: int
    weights: int


def _inspect_space(model: Model) -> _Space:
    if not model.method.divides_network:
        usage = model.method.layer_usage()[:-1]
        layers = [
            LayerSpace(e.name, e.units, e.unused, None, e.used - e.reserved, e.reserved, None, e.connections)
            for e in usage
        ]
        tasks = [TaskSpace(number, classes, 0, 0) for number, classes in enumerate(model.tasks, 1)]
        return _Space(layers, tasks, model.method.blueprint.input.size, model.method.parameters_kept())
    ledger = model.method.ledger
    blueprint, never_selected = ledger.blueprint, count_never_selected(model) or {}
    states = torch.cat([ledger.state[layer.name] for layer in blueprint.hidden])
    owners = torch.cat([held.owner for held in ledger.connections.values()])
    layers = [_layer(ledger, layer.name, never_selected.get(layer.name)) for layer in blueprint.hidden]
    tasks = [
        TaskSpace(number + 1, classes, int((states == number).sum()), int((owners == number).sum()))
        for number, classes in enumerate(model.tasks)
    ]
    weights = sum(held.value.numel() for held in ledger.connections.values())
    return _Space(layers, tasks, int(ledger.used(blueprint.input.name).sum()), weights)


def _tells_unknown(model: Model) -> bool:
    try:
        return bool(model.method.detector)
    except SettingsError:
        return False


def _task_accuracies(model: Model) -> list[float]:
    """The last row of the accuracy matrix. Files are not trusted."""
    matrix, tasks = model.metrics.get("matrix"), len(model.tasks)
    row = matrix[-1] if isinstance(matrix, list) and len(matrix) == tasks and isinstance(matrix[-1], list) else []
    numbers = [float(each) for each in row if isinstance(each, int | float) and math.isfinite(each)]
    return numbers if len(numbers) == tasks else []


def _describe_encoder(model: Model) -> str | None:
    known = model.config.preprocessing
    if not known.encoder:
        return None
    version = f" {known.encoder_version}" if known.encoder_version else ""
    where = "not in the file"
    if model.encoder_weights is not None:
        where = f"in the file ({format_bytes(sum(array.nbytes for array in model.encoder_weights.values()))})"
    return f"{known.encoder}{version}, SHA-256 {(known.encoder_checksum or 'unknown')[:12]}, weights {where}"


def _describe(made: Normalization) -> str:
    scale = f"times {made.scale:.6g}" if made.scale != 1 / 255 else "bytes (0 to 255) as 0 to 1"
    most = f", at most {made.clip:g}" if math.isfinite(made.clip) else ""
    before = "" if made.scale == 1 else f"{scale}, "
    before += "square roots, " if made.root else ""
    return f"{before}minus {_number(made.mean)}, divided by {_number(made.std)}{most}"


def _number(tensor: Tensor) -> str:
    low, high = float(tensor.min()), float(tensor.max())
    return f"{low:.4g}" if low == high else f"a number for each feature ({low:.4g} to {high:.4g})"


def _layer(ledger: Ledger, name: str, never_selected: int | None) -> LayerSpace:
    free, used = ledger.state[name] == FREE, ledger.used(name)
    unused, shared, reserved = (int(part.sum()) for part in (free & ~used, free & used, ~free))
    pairs = [torch.zeros(0, 2, dtype=torch.long)]
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        ends = [held.source] * (link.source == name) + [held.target] * (link.target == name)
        pairs += [torch.stack([end.long(), held.owner.long()], 1) for end in ends]
    owners = torch.cat(pairs).unique(dim=0)[:, 0].bincount(minlength=1)
    several, connections = int((owners > 1).sum()), int(ledger.ingoing(name).sum())
    return LayerSpace(name, len(free), unused, never_selected, shared, reserved, several, connections)


def _sizes(model: Model, file_bytes: int) -> FileSizes:
    method = model.method
    if not method.divides_network:
        dense = method.count_new_numbers(method.design, method.settings)
        return FileSizes(file_bytes, None, method.bytes_to_predict(), method.bytes_kept(), FLOAT_BYTES * dense)
    ledger = method.ledger
    size, links = ledger.size, ledger.blueprint.links
    dense = sum(size(link.target) * size(link.source) * math.prod(link.kernel) for link in links)
    dense += sum(values.numel() for values in ledger.units.values())
    connections = sum(map(len, ledger.connections.values()))
    per_connection = (file_bytes - method.extra_bytes()) / max(1, connections)
    return FileSizes(file_bytes, per_connection, method.bytes_to_predict(), method.bytes_kept(), FLOAT_BYTES * dense)


def _measured(metrics: dict[str, Any]) -> dict[str, Any]:
    """What a run measured, if the file holds it. Values of other types are ignored: files are not trusted."""
    numbers = {name: metrics[name] for name in FIGURES if isinstance(metrics.get(name), (int, float))}
    after, stream, part = (metrics.get(name) for name in ("tasks_learned", "stream", "evaluated_on"))
    named = [text for text in (stream, part) if isinstance(text, str)]
    return {
        "measured": {name: float(value) for name, value in numbers.items() if math.isfinite(value)},
        "measured_on": ", ".join(named),
        "measured_after": after if isinstance(after, int) else None,
    }
