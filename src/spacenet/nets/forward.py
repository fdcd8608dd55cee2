"""The function that a graph computes, at the width of the parameters that it is given."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.nets.graph import FUNCTIONS, Graph, Node
from spacenet.space.blueprint import PRECOMPUTED, TRAINING, Derivative, Forward, Hook, Link, Params
from spacenet.space.operations import connect_all, normalize

Step = Callable[..., Tensor]
"""(params, hook, *inputs) → the result of a node."""
Steps = list[tuple[Step | None, list[int], list[int]]]
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "sub": torch.sub,
    "div": torch.div,
}


def compile_steps(graph: Graph, layers: Sequence[Sequence[str]], links: Mapping[int, Sequence[Link]]) -> Steps:
    """The steps of a graph after its input: the function, the numbers of its inputs, and those not needed afterwards.

    `layers` are those of each node's result, `links` those of each linear layer.
    """
    inputs = [_whole_maps(graph, node, links.get(number, ())) for number, node in enumerate(graph.nodes)]
    last_use = {before: number for number, each in enumerate(inputs) for before in each}
    steps = []
    for number, node in enumerate(graph.nodes[1:], start=1):
        done = [before for before in dict.fromkeys(inputs[number]) if last_use[before] == number]
        unused = node.op == "flatten" and number not in last_use
        step = None if unused else _step(node, layers[node.inputs[0]], layers[number], links.get(number, ()))
        steps.append((step, inputs[number], done))
    return steps


def compile_forward(steps: Steps, shape: Sequence[int]) -> Forward:
    """The function of these steps, for inputs that are seen in this shape."""

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        if x.dim() != 1 + len(shape):
            x = x.flatten(1) if len(shape) == 1 else x.reshape(x.shape[0], *shape)
        values: list[Tensor | None] = [x]
        for step, inputs, done in steps:
            values.append(None if step is None else step(params, hook, *[values[before] for before in inputs]))
            for before in done:  # what is not needed any more need not stay in memory
                values[before] = None
        result = values[-1]
        assert result is not None
        return result

    return forward


def _whole_maps(graph: Graph, node: Node, links: Sequence[Link]) -> list[int]:
    """The inputs of a node; of a linear layer, the maps before they are flattened, which hooks are to see."""
    before = graph.nodes[node.inputs[0]] if node.inputs else node
    return before.inputs if len(links) == 1 and node.op == "linear" and before.op == "flatten" else node.inputs


def _step(node: Node, sources: Sequence[str], targets: Sequence[str], links: Sequence[Link]) -> Step:
    if node.op in ("linear", "conv"):
        return _link(node, targets[0], links) if node.groups == 1 else _grouped(node, targets[0])
    if node.op in ("batch_norm", "group_norm", "scale", "shift"):
        return _on_units(node, sources)
    if node.op == "cat":
        return lambda params, hook, *parts: torch.cat(parts, 1)
    if node.op in BINARY:
        function = BINARY[node.op]
        return lambda params, hook, a, b: function(a, b)
    if node.op == "flatten":
        return lambda params, hook, h: h.flatten(1)
    if node.op == "reshape":
        positions: list[int] = list(node.args)  # type: ignore[arg-type]
        return lambda params, hook, h: h.reshape(*h.shape[:2], *positions)
    if node.op == "dropout":
        drop, probability = torch.feature_dropout if node.args[1] else torch.dropout, float(node.args[0])  # type: ignore[arg-type]
        return lambda params, hook, h: drop(h, probability, True) if TRAINING in params else h
    function, args = FUNCTIONS[node.op], node.args
    return (lambda params, hook, h: function(h, *args)) if args else (lambda params, hook, h: function(h))


def _link(node: Node, target: str, links: Sequence[Link]) -> Step:
    bias, axes = f"{target}.bias", (1,) * len(node.kernel)
    own_bias = f"{target}.{node.name}.bias"

    def step(params: Params, hook: Hook | None, h: Tensor) -> Tensor:
        out = connect_all(params, links, h, hook)
        if not node.bias:
            return out
        value = params[bias] if bias in params else params[own_bias]
        return out + (value.view(-1, *axes) if axes or value.dim() > 1 else value)

    return step


def _grouped(node: Node, layer: str) -> Step:
    """A convolution whose weights belong to the units: a depthwise one, or one in groups that are units."""
    weight, bias, dimensions = f"{layer}.{node.name}.weight", f"{layer}.{node.name}.bias", len(node.kernel)
    convolution = F.conv2d if dimensions == 2 else F.conv1d

    def step(params: Params, hook: Hook | None, h: Tensor) -> Tensor:
        kernels = params[weight]
        group = 1 if kernels.dim() == dimensions + 1 else kernels.shape[2]
        kernels = kernels.reshape(-1, group, *node.kernel)
        shift = params[bias].flatten() if node.bias else None
        groups = h.shape[1] // group
        return convolution(h, kernels, shift, node.stride, node.padding, node.dilation, groups)

    return step


def _on_units(node: Node, layers: Sequence[str]) -> Step:
    """A normalization, or a product or sum with a parameter, for each of the layers whose features are concatenated."""
    part = _normalize(node) if node.op.endswith("norm") else _with_parameter(node)
    if len(layers) == 1:
        return lambda params, hook, h: part(params, layers[0], h)
    key = f".{node.name}" if node.op in ("scale", "shift") else f".{node.name}.scale"
    values = 1 if node.op.endswith("norm") else 1 + len(node.args)

    def step(params: Params, hook: Hook | None, h: Tensor) -> Tensor:
        found = [params[layer + key] for layer in layers]
        sizes = [each.shape[0] if each.dim() == values else each.shape[0] * each.shape[1] for each in found]
        parts = h.split(sizes, 1)
        return torch.cat([part(params, layer, each) for layer, each in zip(layers, parts, strict=True)], 1)

    return step


def _normalize(node: Node) -> Callable[[Params, str, Tensor], Tensor]:
    if node.op == "batch_norm":
        epsilon, momentum = (float(value) for value in node.args)  # type: ignore[arg-type]
        return lambda params, layer, h: normalize(params, layer, h, node.name, epsilon, momentum)
    size, eps = int(node.args[0]), float(node.args[1])  # type: ignore[arg-type]

    def step(params: Params, layer: str, h: Tensor) -> Tensor:
        scale, shift = (params[f"{layer}.{node.name}.{name}"].flatten() for name in ("scale", "shift"))
        return F.group_norm(h, h.shape[1] // size, scale, shift, eps)

    return step


def _with_parameter(node: Node) -> Callable[[Params, str, Tensor], Tensor]:
    function, positions = BINARY["mul" if node.op == "scale" else "add"], len(node.args)

    def step(params: Params, layer: str, h: Tensor) -> Tensor:
        value = params[f"{layer}.{node.name}"]
        if value.dim() > 1 + positions:
            value = value.flatten(0, 1)
        return function(h, value.view(*value.shape, *(1,) * (h.dim() - 1 - value.dim())))

    return step


_relu_backward = torch.ops.aten.threshold_backward.default


def find_derivative(graph: Graph, links: Sequence[Link]) -> Derivative | None:
    """The gradient by hand, if the graph is a chain of linear layers with ReLU between them."""
    ops = [node.op for node in graph.nodes[1:]]
    chain = ops == (["linear", "relu"] * len(links))[:-1] and all(n.bias for n in graph.nodes if n.op == "linear")
    in_order = all(node.inputs == [number] for number, node in enumerate(graph.nodes[1:]))
    return ChainDerivative(links) if chain and in_order and len(graph.nodes[0].args) == 1 else None


class ChainDerivative:
    """A chain of linear layers and its gradient, operation by operation as autograd would compute them."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = [(link.name, link.name + PRECOMPUTED, f"{link.target}.bias") for link in links]

    def forward(self, params: Params, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        h = x.flatten(1)
        activations: list[Tensor] = []
        for weight, precomputed, bias in self.links:
            if activations:
                h.relu_()
            activations.append(h)
            h = h.mm(params[weight].t())
            if precomputed in params:
                h.add_(params[precomputed])
            h.add_(params[bias])
        return h, activations

    def backward(self, params: Params, activations: list[Tensor], gradient: Tensor, out: Params) -> None:
        for (weight, _, bias), h in zip(reversed(self.links), reversed(activations), strict=True):
            torch.sum(gradient, 0, out=out[bias])
            torch.mm(gradient.t(), h, out=out[weight])
            if h is not activations[0]:
                gradient = _relu_backward(gradient.mm(params[weight]), h, 0)
