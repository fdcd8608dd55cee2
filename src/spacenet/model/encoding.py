"""What a model file holds: facts as one JSON text, and arrays in about as many bytes as the connections need.

Connections are sorted by owner, target and source. Each link has a table of rows (owner, target, how many), and for
each connection its source, in as few bytes as the number of sources needs, and its value. What a method keeps besides
its connections, such as summaries of classes, stands under extra/ as it is.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spacenet import __version__
from spacenet.config.plain import to_plain
from spacenet.config.training import TrainingConfig
from spacenet.data.preprocessing import Array
from spacenet.errors import ModelFileError
from spacenet.model.model import Label, Model
from spacenet.config.model import NetConfig
from spacenet.space.blueprint import Link
from spacenet.space.ledger import Ledger

FORMAT = 1
EXTRA = "extra/"
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Facts:
    """The header's JSON text."""

    format: int
    spacenet: str
    method: str
    seed: int
    net: NetConfig
    training: TrainingConfig
    options: dict[str, Any]
    input_shape: tuple[int, ...]
    scale: float
    tasks: list[list[Label]]
    metrics: dict[str, Any] = field(default_factory=dict)


def encode(model: Model) -> tuple[str, Arrays]:
    """The header's text and the arrays."""
    if model.normalization is None:
        raise ModelFileError("the model has learned nothing yet, there is nothing to save")
    recipe, ledger, normalization = model.recipe, model.method.ledger, model.normalization
    facts = Facts(
        FORMAT,
        __version__,
        recipe.method,
        recipe.seed,
        recipe.net,
        recipe.training,
        to_plain(recipe.options),
        recipe.input_shape,
        normalization.scale,
        [list(task) for task in model.tasks],
        model.metrics,
    )
    std = normalization.std
    arrays = {
        "normalization/mean": normalization.mean.expand(recipe.input_shape).numpy(),
        "normalization/std": (std.expand(recipe.input_shape) if std.dim() else std.reshape(1)).numpy(),
    }
    arrays |= {f"state/{p.name}": ledger.state[p.name].numpy() for p in ledger.blueprint.hidden}
    arrays |= {f"units/{key}": values.numpy() for key, values in ledger.units.items()}
    for link in ledger.blueprint.links:
        arrays |= _columns(link, ledger)
    arrays |= {EXTRA + name: held.numpy() for name, held in model.method.extra().items()}
    text = json.dumps(to_plain(facts), sort_keys=True)
    return text, {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _columns(link: Link, ledger: Ledger) -> Arrays:
    """A link's connections, sorted and in few bytes."""
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
    """The smallest type that can count so many sources."""
    return np.min_scalar_type(max(0, sources - 1))
