"""What must hold of a model at any moment of its life, and between two moments."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spacenet.data.preprocessing import Array
from spacenet.model.file import load_model, make_probe, to_bytes
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.space.ledger import FREE, Connections


class Broken(AssertionError):
    """An invariant that does not hold."""


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


@dataclass(frozen=True)
class Record:
    """A model at one moment, to compare it with later."""

    tasks: tuple[tuple[Label, ...], ...]
    links: dict[str, Connections]
    """Sorted by owner, target and source: later tasks come behind earlier ones."""
    state: dict[str, Tensor]
    units: dict[str, Tensor]
    layer_of: dict[str, str]
    """The layer that each of the units' values belongs to."""
    extra: dict[str, Tensor]
    probe: Array
    scores: Tensor
    content: bytes
    loads: list[bool] = field(default_factory=list)
    """Not empty once a file with this content was loaded and compared."""

    @classmethod
    def of(cls, model: Model) -> "Record":
        probe = make_probe(model)
        if not model.method.divides_network:  # nothing need stay as it is from task to task
            found = model.scores(probe).clone()
            return cls(tuple(model.tasks), {}, {}, {}, {}, {}, probe, found, to_bytes(model))
        ledger = model.method.ledger
        return cls(
            tuple(model.tasks),
            {name: _in_order(held) for name, held in ledger.connections.items()},
            {name: state.clone() for name, state in ledger.state.items()},
            {key: values.clone() for key, values in ledger.units.items()},
            {key: layer.name for key, (layer, _) in ledger.blueprint.unit_values().items()},
            {name: tensor.clone() for name, tensor in model.method.extra_state().items()},
            probe,
            model.scores(probe).clone(),
            to_bytes(model),
        )

    def grown(self, earlier: "Record") -> bool:
        """Whether units of a hidden layer were added since."""
        return any(len(self.state[name]) > len(state) for name, state in earlier.state.items())


def _in_order(held: Connections) -> Connections:
    order = np.lexsort([column.numpy() for column in (held.source, held.target, held.owner)])
    return held[torch.from_numpy(order)]


def check_unchanged(before: Record, model: Model, what: str) -> None:
    """A model that answers as before, and that would be written to the same bytes."""
    expect(tuple(model.tasks) == before.tasks, f"{what}: the tasks are {model.tasks}, not {before.tasks}")
    expect(torch.equal(model.scores(before.probe), before.scores), f"{what}: it answers otherwise")
    expect(to_bytes(model) == before.content, f"{what}: it holds something else")


def check_updated(before: Record, after: Record) -> None:
    """More samples of known classes have changed what is kept of these classes, and no hidden connection."""
    check_continued(before, after, updated=True)


def check_continued(before: Record, after: Record, *, updated: bool = False) -> None:
    """What earlier tasks own is the same to the bit: connections, reserved units, outputs, class statistics. Where
    classes were updated, outputs and statistics need not be."""
    known = len(before.tasks)
    expect(after.tasks[:known] == before.tasks, "an earlier task has other classes")
    for name, old in before.links.items():
        new, learns = after.links[name], updated and name.endswith("output")
        expect(bool((new.owner[len(old) :] >= known).all()), f"{name}: an earlier task has gained a connection")
        for column in ("source", "target", "owner", *(() if learns else ("value",))):
            same = torch.equal(getattr(new, column)[: len(old)], getattr(old, column))
            expect(same, f"{name}: the {column} of a frozen connection has changed")
    for name, old_state in before.state.items():
        reserved = (old_state != FREE).nonzero().flatten()
        expect(torch.equal(after.state[name][reserved], old_state[reserved]), f"{name}: a reserved unit has changed")
        if updated and name == "output":
            continue
        for key in (key for key, layer in before.layer_of.items() if layer == name):
            frozen = torch.arange(len(old_state)) if name == "output" else reserved
            same = torch.equal(after.units[key][frozen], before.units[key][frozen])
            expect(same, f"{key}: a value of a frozen unit has changed")
    for key, kept in before.extra.items() if not updated else ():
        now = after.extra.get(key, torch.zeros(0))
        expect(
            torch.equal(now[: len(kept)] if kept.dim() else now, kept), f"{key}: what is kept of a class has changed"
        )


def check_structure(model: Model) -> None:
    """Each connection has one owner, reserved units gain nothing, and there is an output for each class of a task."""
    outputs = sum(map(len, model.tasks))
    if not model.method.divides_network:
        expect(len(model.outputs) == outputs, "outputs and classes do not agree")
        return
    ledger = model.method.ledger
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        position = held.target.long() * ledger.size(link.source) + held.source.long()
        expect(len(position.unique()) == len(position), f"{link.name}: a connection has two owners")
        until = ledger.state[link.target][held.target.long()]
        late = (until != FREE) & (held.owner > until)
        expect(not bool(late.any()), f"{link.name}: a reserved unit has gained an ingoing connection")
        expect(bool(held.value.isfinite().all()), f"{link.name}: a weight is not a number")
    expect(ledger.size("output") == outputs == len(model.outputs), "outputs and classes do not agree")


def check_answers(model: Model, x: Array) -> None:
    """Probabilities are such, and predictions are labels that the model knows."""
    shares, known = model.predict_proba(x), {(type(label), label) for label in model.classes}
    expect(shares.shape == (len(x), len(known)), f"predict_proba has the shape {shares.shape}")
    expect(bool(np.isfinite(shares).all()), "a probability is not a number")
    expect(bool(np.allclose(shares.sum(1), 1, rtol=0, atol=1e-9)), "probabilities do not add up to 1")
    expect(all((type(label), label) in known for label in model.predict(x)), "a prediction is no known label")


def check_file(path: Path, saved: Record) -> None:
    """The file is what was saved last; it loads, answers alike, and is written again to the same bytes."""
    expect(path.read_bytes() == saved.content, "the file is not what was saved last")
    if not saved.loads:  # the same bytes load alike
        check_unchanged(saved, load_model(path), "the model in the file")
        saved.loads.append(True)


def check_folder(folder: Path, *names: str) -> None:
    """Nothing lies in a folder but these files."""
    found = sorted(path.name for path in folder.iterdir())
    expect(found == sorted(names), f"left behind: {sorted(set(found) - set(names))} of {found}")
