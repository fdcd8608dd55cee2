"""What a task asks of the space, worked out from the settings: units and connections, layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spacenet.errors import SettingsError
from spacenet.space.blueprint import Link
from spacenet.space.ledger import Ledger


@dataclass(frozen=True)
class ResolvedBudget:
    """What one task asks of the space. Populations and links are given by name."""

    selected: Mapping[str, int]
    """Free units to lay connections among, for each hidden layer (the paper's sel)."""
    reserved: Mapping[str, int]
    """How many of those become the task's own at its end (the paper's spec)."""
    connections: Mapping[str, int]
    """How many connections each link gets."""
    least: Mapping[str, int] = field(default_factory=dict)
    """With how many a link can do if no more positions are open; those not named need all."""


def resolve(
    ledger: Ledger, selected: Sequence[int], reserved: Sequence[int], connections: Sequence[float], classes: int
) -> ResolvedBudget:
    """The demand of a task of so many classes. One number stands for all layers.

    Selected 0 means all free units. Connections below 1 are shares of all that a link could hold. Where less is left,
    half of a share will do; and from the inputs, which may be a single channel, whatever keeps selected units alive.
    """
    groups = {p.name: p.group or p.name for p in ledger.blueprint.hidden}
    names = list(dict.fromkeys(groups.values()))
    of_selected, of_reserved = _for_each("selected", selected, names), _for_each("reserved", reserved, names)
    units = {name: int(of_selected[group]) or len(ledger.free(name)) for name, group in groups.items()}
    asked = _for_each("connections", connections, [link.name for link in ledger.blueprint.links])
    counts = _connections(ledger, asked, units, classes)
    return ResolvedBudget(
        selected=units,
        reserved={name: int(of_reserved[group]) for name, group in groups.items()},
        connections=counts,
        least={
            link.name: _dead(ledger, link, units, classes)
            if link.source == ledger.blueprint.input.name
            else -(-counts[link.name] // 2)
            for link in ledger.blueprint.links
            if asked[link.name] < 1
        },
    )


def _connections(
    ledger: Ledger, asked: Mapping[str, float], selected: Mapping[str, int], classes: int
) -> dict[str, int]:
    """How many connections each link gets; a share of a tiny layer is raised so that no selected unit is dead.

    A percentage of three or sixteen maps may be none at all. What is added there for units into which nothing leads
    yet, the largest link gives, so that the total stays.
    """
    links = {link.name: link for link in ledger.blueprint.links}
    size = {p.name: ledger.size(p.name) for p in ledger.blueprint.layers}
    size[ledger.blueprint.output.name] = classes
    counts = {name: int(count) for name, count in asked.items()}
    plain = {
        name: round(share * size[links[name].source] * size[links[name].target])
        for name, share in asked.items()
        if share < 1
    }
    raised = {name: max(count, _dead(ledger, links[name], selected, classes)) for name, count in plain.items()}
    if raised:
        largest = max(raised, key=lambda name: raised[name])
        surplus = sum(raised.values()) - sum(plain.values())
        raised[largest] = max(_dead(ledger, links[largest], selected, classes), raised[largest] - surplus)
    return counts | raised


def _dead(ledger: Ledger, link: Link, selected: Mapping[str, int], classes: int) -> int:
    """Up to how many of the units that a task selects have no ingoing connection over this link yet."""
    if link.target == ledger.blueprint.output.name:
        return classes
    fed = ledger.fed(link)[ledger.free(link.target)]
    return min(selected[link.target], int((~fed).sum()))


def _for_each(setting: str, values: Sequence[float], names: list[str]) -> dict[str, float]:
    """One value per name; a single value stands for all."""
    if len(values) == 1:
        values = [values[0]] * len(names)
    if len(values) != len(names):
        raise SettingsError(f"{setting}: {len(values)} numbers for {', '.join(names)}; give one, or {len(names)}")
    return dict(zip(names, values, strict=True))
