"""What a model file holds: a header as one JSON text, and arrays in about as many bytes as the connections need.

Connections are sorted by owner, target and source. Each link has a table of rows (owner, target, count), and for each
connection its source, in as few bytes as the number of sources needs, and its value. What a method keeps besides its
connections, such as class statistics, is stored under extra/ as it is.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spacenet import __version__
from spacenet.config.settings import to_plain
from spacenet.data.preprocessing import Array
from spacenet.errors import ModelFileError
from spacenet.model.model import Label, Model
from spacenet.space.blueprint import Link
from spacenet.space.ledger import Ledger

FORMAT = 2
EXTRA = "extra/"
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Header:
    """The header's JSON text."""

    format: int
    spacenet: str
    config: dict[str, Any]
    """The model's whole configuration, as `ModelConfig.to_plain` gives it."""
    input_shape: tuple[int, ...]
    scale: float
    tasks: list[list[Label]]
    metrics: dict[str, Any] = field(default_factory=dict)


def encode(model: Model) -> tuple[str, Arrays]:
    """The header's text and the arrays."""
    if model.normalization is None:
        raise ModelFileError("the model has not learned anything yet, there is nothing to save")
    ledger, normalization = model.method.ledger, model.normalization
    header = Header(
        FORMAT,
        __version__,
        model.config.to_plain(),
        model.input_shape,
        normalization.scale,
        [list(task) for task in model.tasks],
        model.metrics,
    )
    std = normalization.std
    arrays = {
        "normalization/mean": normalization.mean.expand(model.input_shape).numpy(),
        "normalization/std": (std.expand(model.input_shape) if std.dim() else std.reshape(1)).numpy(),
    }
    arrays |= {f"state/{layer.name}": ledger.state[layer.name].numpy() for layer in ledger.blueprint.hidden}
    arrays |= {f"units/{key}": values.numpy() for key, values in ledger.units.items()}
    for link in ledger.blueprint.links:
        arrays |= _columns(link, ledger)
    arrays |= {EXTRA + name: tensor.numpy() for name, tensor in model.method.extra_state().items()}
    text = json.dumps(to_plain(header), sort_keys=True)
    return text, {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _columns(link: Link, ledger: Ledger) -> Arrays:
    """A link's connections, sorted and compact."""
    held = ledger.connections[link.name]
    owner, target, source = (column.numpy().astype(np.int64) for column in (held.owner, held.target, held.source))
    order = np.lexsort((source, target, owner))
    rows, counts = np.unique(np.stack([owner[order], target[order]], axis=1), axis=0, return_counts=True)
    table = np.concatenate([rows, counts[:, None]], axis=1)
    return {
        f"links/{link.name}/rows": table.astype(np.uint32),
        f"links/{link.name}/source": source[order].astype(source_type(ledger.size(link.source))),
        f"links/{link.name}/value": held.value.numpy()[order],
    }


def source_type(sources: int) -> "np.dtype[Any]":
    """The smallest type that can number this many sources."""
    return np.min_scalar_type(max(0, sources - 1))
