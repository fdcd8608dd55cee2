"""From a graph to a blueprint: which features of a network are the same units, and which layers are connected.

Features that an addition, a product, a normalization or a depthwise convolution joins belong to the same units. A
concatenation has the units of several layers one after the other; flattening a map gives a unit one feature for each
position. A convolution in groups, like group norm, makes a unit of each group.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from spacenet.nets.forward import compile_forward, compile_steps, find_derivative
from spacenet.nets.graph import FUNCTIONS, Graph, Node, unsupported
from spacenet.space.blueprint import Blueprint, Layer, Link, UnitValue
from spacenet.space.operations import norm_values

MAX_CHANNELS = 10_000_000
NORM = (".weight", ".bias", ".running_mean", ".running_var")
"""Parameters and statistics of a normalization in PyTorch."""


@dataclass(eq=False)
class Population:
    """Units that belong together, as far as they are known."""

    channels: int
    number: int  # of the node where it appears first
    each: int = 1  # channels of one unit
    producers: list[Node] = field(default_factory=list)
    joined: "Population | None" = None  # the one that it turned out to be part of
    ratio: int = 1  # its channels for each channel of that one
    values: list[UnitValue] = field(default_factory=list)
    name: str = ""

    def root(self) -> "Population":
        return self if self.joined is None else self.joined.root()

    def per_root(self) -> int:
        """Its channels for each channel of its root."""
        return 1 if self.joined is None else self.ratio * self.joined.per_root()

    @property
    def units(self) -> int:
        return self.channels // self.each


@dataclass(frozen=True)
class Part:
    """Features of a tensor that belong to one population, `per_channel` for each of its channels."""

    population: Population
    per_channel: int = 1

    @property
    def features(self) -> int:
        return self.population.channels * self.per_channel

    def per_root(self) -> int:
        """Features for each channel of the population's root."""
        return self.per_channel * self.population.per_root()

    def per_unit(self) -> int:
        return self.population.root().each * self.per_root()


Parts = tuple[Part, ...]


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a link, or of a unit value, are in the module: features of one of its parameters."""

    name: str
    first: int
    count: int
    of: int


def build_blueprint(graph: Graph) -> Blueprint:
    """The blueprint of a traced network. Raises `SettingsError` for what units of different tasks cannot share."""
    return describe(graph)[0]


def describe(graph: Graph) -> tuple[Blueprint, dict[str, Origin]]:
    """The same, with the origin of each of its parameters."""
    parts: list[Parts] = []
    for number, node in enumerate(graph.nodes):
        if any(not 0 <= before < number for before in node.inputs) or bool(node.inputs) == (number == 0):
            raise unsupported(f"operation {number} ({node.op}) computes with results that are not there")
        parts.append(_join(node, number, [parts[before] for before in node.inputs]))
    builder = _Builder(graph, parts)
    return builder.build(), builder.origins


def _join(node: Node, number: int, inputs: Sequence[Parts]) -> Parts:
    """The units of a node's result; those that it joins are one population from now on."""
    if node.op == "input":
        return (Part(_population(node.args[0], number, node)),)  # type: ignore[arg-type]
    if node.op in ("linear", "conv"):
        return _join_link(node, number, inputs[0])
    if node.op in ("add", "mul", "sub", "div"):
        return _join_both(node, *inputs)
    if node.op == "cat":
        return tuple(part for parts in inputs for part in parts)
    if node.op == "flatten":
        return tuple(Part(part.population, part.per_channel * int(node.args[0])) for part in inputs[0])  # type: ignore[arg-type]
    if node.op == "group_norm":
        _make_whole(node, inputs[0], int(node.args[0]))  # type: ignore[arg-type]
    elif node.op not in ("batch_norm", "reshape", "scale", "shift", "dropout", *FUNCTIONS):
        raise unsupported(f"unknown operation {node.op!r}")
    return inputs[0]


def _population(channels: int, number: int, node: Node) -> Population:
    if not 0 < channels <= MAX_CHANNELS:
        raise unsupported(f"{node.name or node.op} has {channels} units; 1 to {MAX_CHANNELS:,} are possible")
    return Population(channels, number, producers=[node])


def _join_link(node: Node, number: int, parts: Parts) -> Parts:
    if node.groups == 1:
        return (Part(_population(node.out, number, node)),)
    features = sum(part.features for part in parts)
    if node.groups < 1 or features % node.groups or node.out % features:
        remedy = "Groups that divide its inputs, and as many outputs as inputs or a multiple, can."
        raise unsupported(f"{node.name} has {node.groups} groups of {features} inputs and {node.out} outputs", remedy)
    _make_whole(node, parts, features // node.groups)
    return tuple(Part(part.population, part.per_channel * (node.out // features)) for part in parts)


def _make_whole(node: Node, parts: Parts, size: int) -> None:
    """Make each group of so many features a unit, or several units' groups one."""
    if len(parts) > 1 or parts[0].per_root() > 1 or size < 1 or parts[0].features % size:
        raise unsupported(f"{node.name}: its groups are not whole units, so tasks would share them")
    population = parts[0].population.root()
    population.each = math.lcm(population.each, size)


def _join_both(node: Node, one: Parts, other: Parts) -> Parts:
    if [part.features for part in one] != [part.features for part in other]:
        what = "A sum" if node.op in ("add", "sub") else "A product"
        raise unsupported(f"{what} of tensors whose channels do not match", "Concatenate both in the same way.")
    for a, b in zip(one, other, strict=True):
        # The one whose channels stand for more features is kept; of two alike, the first.
        kept, gone = sorted((a, b), key=lambda part: (-part.per_root(), part.population.root().number))
        root, joined = kept.population.root(), gone.population.root()
        if (root is joined and kept.per_root() != gone.per_root()) or kept.per_root() % gone.per_root():
            raise unsupported("units are added to, or multiplied with, other parts of themselves")
        if root is joined:
            continue
        if 0 in (root.number, joined.number):
            raise unsupported("the input itself is added to, or multiplied with, a layer", "Put a layer in between.")
        joined.joined, joined.ratio = root, kept.per_root() // gone.per_root()
        root.each = math.lcm(root.each, joined.each // math.gcd(joined.each, joined.ratio))
        first, second = sorted((root, joined), key=lambda each: each.number)
        root.producers = [*first.producers, *second.producers]
        root.number = first.number
    return one


class _Builder:
    """Names the populations and makes layers, links and the function of them."""

    def __init__(self, graph: Graph, parts: list[Parts]) -> None:
        self.graph, self.parts = graph, parts
        self.populations = list(dict.fromkeys(part.population.root() for each in parts for part in each))
        self.output = parts[-1][0].population.root()
        self.links: list[Link] = []
        self.of_node: dict[int, list[Link]] = {}
        self.origins: dict[str, Origin] = {}

    def build(self) -> Blueprint:
        last = self.graph.nodes[-1]
        if last.op != "linear" or len(self.output.producers) > 1 or len(self.graph.nodes) < 2:
            raise unsupported("the network does not end with a Linear layer", "Its outputs must be those of nn.Linear.")
        self._name()
        for number, node in enumerate(self.graph.nodes):
            self._add_values(number, node)
            if node.op in ("linear", "conv") and node.groups == 1:
                self._add_links(number, node)
        layers, links = self._layers(), tuple(self.links)
        names = [[part.population.root().name for part in parts] for parts in self.parts]
        steps = compile_steps(self.graph, names, self.of_node)
        forward = compile_forward(steps, self.graph.input_shape)
        drops = any(node.op == "dropout" for node in self.graph.nodes)
        return Blueprint(layers, links, forward, find_derivative(self.graph, links), drops)

    def _name(self) -> None:
        """Each population is named after the layer that makes it; if several do, after the module that has most."""
        taken = Counter[str]()
        for population in self.populations:
            if population is self.populations[0] or population is self.output:
                name = "input" if population is self.populations[0] else "output"
            else:
                paths = [producer.name.split(".") for producer in population.producers]
                top = Counter(path[0] for path in paths).most_common(1)[0][0]
                same = [path for path in paths if path[0] == top]
                steps = takewhile(lambda step: len(set(step)) == 1, zip(*same, strict=False))
                shared = [step[0] for step in steps]
                name = ".".join(shared) or f"layer{population.number}"
            taken[name] += 1
            population.name = name if taken[name] == 1 else f"{name}-{taken[name]}"

    def _add_values(self, number: int, node: Node) -> None:
        """The values that a node gives to the units that it computes."""
        first, total = 0, sum(part.features for part in self.parts[number])
        for part in self.parts[number]:
            population = part.population.root()
            for value, parameter in self._values(node, part):
                population.values.append(value)
                origin = Origin(f"{node.name}{parameter}", first, part.features, total)
                self.origins[f"{population.name}.{value.name}"] = origin
            first += part.features

    def _values(self, node: Node, part: Part) -> list[tuple[UnitValue, str]]:
        """The values of one part's units, and the names of the module's parameters."""
        population, each = part.population.root(), part.per_unit()
        several = () if each == 1 else (each,)
        if node.op == "batch_norm":
            return list(zip(norm_values(node.name, several), NORM, strict=True))
        if node.op == "group_norm":
            return list(zip(norm_values(node.name, several)[:2], NORM, strict=False))
        if node.op in ("scale", "shift"):
            shape = (*several, *(int(length) for length in node.args))  # type: ignore[arg-type]
            return [(UnitValue(node.name, node.init.size, shape=shape), "")]
        values = []
        if node.groups > 1:
            inputs = self.parts[node.inputs[0]]
            group = sum(each.features for each in inputs) // node.groups
            shape = (each, group, *node.kernel) if each * inputs[0].per_unit() > 1 else tuple(node.kernel)
            values.append((UnitValue(f"{node.name}.weight", shape=shape, init=node.init), ".weight"))
        if node.bias:
            alone = len(population.producers) == 1 and node.groups == 1
            values.append((UnitValue("bias" if alone else f"{node.name}.bias", shape=several), ".bias"))
        return values

    def _add_links(self, number: int, node: Node) -> None:
        out = self.parts[number][0]
        target = out.population.root()
        self.of_node[number], first = [], 0
        for part in self.parts[node.inputs[0]]:
            source = part.population.root()
            each = (out.per_unit(), part.per_unit())
            kernel = (*(size for size in each if size > 1), *node.kernel)
            name = f"{source.name}-{target.name}"
            if any(link.name == name for link in self.links):
                name = f"{source.name}-{target.name} ({node.name})"
            geometry = tuple(node.stride), tuple(node.padding), tuple(node.dilation)
            link = Link(name, source.name, target.name, kernel, *geometry, each, node.init)
            self.links.append(link)
            self.of_node[number].append(link)
            self.origins[name] = Origin(f"{node.name}.weight", first, part.features, 0)
            first += part.features

    def _layers(self) -> tuple[Layer, ...]:
        """Layers in the order of computation; those inside of a stream of residual blocks form a group with it."""
        hidden = [each for each in self.populations if each is not self.output][1:]
        streams = [each for each in hidden if len(each.producers) > 1]

        def group(population: Population) -> Population:
            alike = (each for each in streams if each.channels == population.channels)
            return next((each for each in alike if population.name.startswith(each.name + ".")), population)

        groups: dict[int, list[Population]] = {}
        for each in hidden:
            groups.setdefault(id(group(each)), []).append(each)
        ordered = [each for found in groups.values() for each in sorted(found, key=lambda p: p is not group(p))]
        layers = [Layer("input", self.populations[0].units, tuple(self.populations[0].values))]
        layers += [Layer(p.name, p.units, tuple(p.values), group(p).name) for p in ordered]
        return (*layers, Layer("output", 0, tuple(self.output.values)))
