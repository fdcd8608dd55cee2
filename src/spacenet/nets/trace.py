"""Tracing: run a module once on a few samples and write down what it computes, as a graph.

PyTorch's dispatcher is asked for every operation, whatever its spelling in the module; only dropout is seen where it is
called. What units of different tasks cannot share is refused here or by `spacenet.nets.populations`.
"""

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from spacenet.errors import SettingsError
from spacenet.nets.graph import FUNCTIONS, Graph, Node, unsupported
from spacenet.space.blueprint import GLOROT, Init

log = logging.getLogger("spacenet")
BATCHES = (3, 5)
"""Samples of the traces that must agree: nothing may depend on their number."""
SAME = ("detach", "alias", "clone", "contiguous", "lift_fresh", "_reshape_alias_copy")
RESHAPES = ("view", "reshape", "_unsafe_view", "_reshape_alias", "squeeze", "unsqueeze", "flatten")
RENAMED = {"max_pool2d_with_indices": "max_pool2d", "_adaptive_avg_pool2d": "adaptive_avg_pool2d"}
SCALAR = {"add": "plus", "mul": "times", "sub": "minus", "div": "over", "pow": "power"}
DROPOUT = {F.dropout: False, F.dropout1d: True, F.dropout2d: True, F.feature_alpha_dropout: None, F.alpha_dropout: None}
ATTENTION = "Attention mixes the units of all tasks; keep it in a frozen encoder before the network."
SLICES = "Channels that are taken apart are units of different layers: compute them by layers of their own."
REMEDIES = {
    "native_layer_norm": "Layer norm mixes the units of all tasks; use batch norm, or group norm of single channels.",
    **dict.fromkeys(("bmm", "baddbmm", "_softmax", "_scaled_dot_product_flash_attention_for_cpu"), ATTENTION),
    **dict.fromkeys(("transpose", "permute"), "Channels must stay the second axis; attention is not possible."),
    **dict.fromkeys(("slice", "split", "select", "split_with_sizes", "chunk", "index", "unbind"), SLICES),
    "_local_scalar_dense": "Branches that depend on the data cannot be traced.",
    "_log_softmax": "Return scores; the loss contains the softmax.",
}


def trace_ours(build: Callable[[], nn.Module], input_shape: tuple[int, ...]) -> Graph:
    """The graph of a module of this package, which does the same in training. Its weights need no initial values."""
    with NoInitialization():
        module = build()
    return _record(module.eval(), input_shape, 2, False)


def trace(module: nn.Module, input_shape: tuple[int, ...], *, initialization: bool = True) -> Graph:
    """The graph of a module for samples of this shape. The module stays as it is.

    With `initialization`, new connections are drawn from the distribution of the module's own weights, else from
    Glorot's. What a module does in training alone, but for dropout and batch norm, is left out with a warning.
    """
    graph = _trace(module, input_shape, False, BATCHES[0], initialization)
    if _trace(module, input_shape, False, BATCHES[1], initialization) != graph:
        raise unsupported("what the network computes depends on the number of samples")
    try:
        training = _trace(module, input_shape, True, BATCHES[0], initialization)
        if _without_dropout(training) == _without_dropout(graph):
            return training
        reason = "it computes something else in training"
    except SettingsError as error:
        reason = error.message
    log.warning("what the network does in training alone is left out, but for its dropout modules: %s", reason)
    return _trace(module, input_shape, None, BATCHES[0], initialization)


def _trace(module: nn.Module, shape: tuple[int, ...], training: bool | None, batch: int, initialization: bool) -> Graph:
    """Trace in training or not; None: only the modules of dropout are in training."""
    module = copy.deepcopy(module).train(bool(training))  # batch norm in training changes its statistics
    for each in module.modules() if training is None else ():
        each.training = isinstance(each, nn.modules.dropout._DropoutNd)
    return _record(module, shape, batch, initialization)


def _record(module: nn.Module, shape: tuple[int, ...], batch: int, initialization: bool) -> Graph:
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    x = torch.randn(batch, *shape, generator=torch.Generator().manual_seed(0)).to(device)
    recorder = _Recorder(module, x, initialization)
    with torch.no_grad(), torch.random.fork_rng(devices=[]), recorder.locate(module), _Dropout(recorder), recorder:
        try:
            result = module(x)
        except SettingsError:
            raise
        except Exception as error:
            what = f"the network cannot compute samples of the shape {shape}: {type(error).__name__}: {error}"
            raise unsupported(what) from error
    return recorder.graph(result)


def _without_dropout(graph: Graph) -> list[Node]:
    """The nodes that remain, with the numbers that they then have."""
    number, kept = dict[int, int](), list[Node]()
    for old, node in enumerate(graph.nodes):
        if node.op == "dropout":
            number[old] = number[node.inputs[0]]
            continue
        number[old] = len(kept)
        kept.append(Node(**{**vars(node), "inputs": [number[before] for before in node.inputs]}))
    return kept


class NoInitialization(TorchFunctionMode):
    """Parameters stay as they are allocated."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return function(*args, **(kwargs or {}))


class _Dropout(TorchFunctionMode):
    """Records dropout as such: the dispatcher would show random numbers and a product."""

    def __init__(self, recorder: "_Recorder") -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function not in DROPOUT or not kwargs.get("training", args[2] if len(args) > 2 else True):
            return function(*args, **kwargs)
        h, probability = args[0], kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        if DROPOUT[function] is None:
            raise unsupported(f"{self.recorder.place()}: alpha dropout", "Use nn.Dropout.")
        return self.recorder.dropout(h, float(probability), bool(DROPOUT[function]))


class _Recorder(TorchDispatchMode):
    """Writes down the operations on what is computed from the input."""

    def __init__(self, module: nn.Module, x: Tensor, initialization: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names = {id(tensor): name for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
        self.initialization, self.batch = initialization, len(x)
        self.nodes: list[Node] = [Node("input", args=list(x.shape[1:]))]
        self.known: dict[int, int] = {id(x): 0}  # the node of each tensor
        self.transposed: dict[int, Tensor] = {}  # the parameter of which it is the transpose
        self.used: dict[str, str] = {}  # parameters, and the place where each was used
        self.alive: list[Any] = [x, module]  # so that no id is given twice
        self.where: list[tuple[str, str]] = []
        self.input_uses = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch, which would otherwise import its compiler: that takes longer than a short run."""
        return False

    # Where it stands

    @contextmanager
    def locate(self, module: nn.Module) -> Iterator[None]:
        """Know the module that is computing."""
        hooks = []
        for name, each in module.named_modules():
            place = (name, type(each).__name__)
            hooks.append(each.register_forward_pre_hook(lambda _, __, place=place: self.where.append(place)))
            hooks.append(each.register_forward_hook(lambda _, __, ___: self.where.pop() and None))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def place(self) -> str:
        name, kind = self.where[-1] if self.where else ("", "the module")
        return f"{kind} at {name}" if name else kind

    # Recording

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out, name = function(*args, **kwargs), function.overloadpacket.__name__
        self.alive.append((out, args))
        flat = [each for arg in args for each in (arg if isinstance(arg, (list, tuple)) else [arg])]
        if not any(id(each) in self.known for each in flat if isinstance(each, Tensor)):
            if name == "t" and id(args[0]) in self.names:
                self.transposed[id(out)] = args[0]
            elif name in (*SAME, "view", "unsqueeze", "expand") and id(args[0]) in self.names:
                self.names[id(out)] = self.names[id(args[0])]
            return out
        name = name.removesuffix("_") if name.endswith("_") and not name.endswith("__") else name
        node = self._node(name, args, kwargs, out)
        first = out[0] if isinstance(out, (tuple, list)) else out
        if isinstance(node, int):
            self.known[id(first)] = node
        else:
            self._add(node, first)
        return out

    def _add(self, node: Node, out: Tensor) -> None:
        if 0 in node.inputs:
            self.input_uses += 1
            if node.op == "flatten" and len(self.nodes) == 1:  # its features are the units
                self.nodes[0] = Node("input", args=[out.shape[1]])
                self.known[id(out)] = 0
                return
        self.nodes.append(node)
        self.known[id(out)] = len(self.nodes) - 1

    def dropout(self, h: Tensor, probability: float, whole: bool) -> Tensor:
        out = h.view_as(h)
        self.alive.append(out)
        self._add(Node("dropout", [self.known[id(h)]], args=[probability, whole]), out)
        return out

    def refuse(self, name: str, reason: str = "") -> SettingsError:
        what = f"{self.place()}: {name} is not possible in a network that tasks share"
        return unsupported(f"{what}{reason and ' (' + reason + ')'}", REMEDIES.get(name, ""))

    def _node(self, name: str, args: Any, kwargs: Any, out: Any) -> Node | int:
        """The node of an operation, or the number of the one that has its result already."""
        if name in SAME:
            return self.known[id(args[0])]
        if name in ("convolution", "addmm", "mm"):
            return self._layer(name, args)
        if name in RESHAPES:
            return self._reshape(name, args[0], out)
        if name in ("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit", "native_group_norm"):
            return self._norm(name, args)
        if name == "cat":
            dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
            if dim % args[0][0].dim() != 1 or any(id(each) not in self.known for each in args[0]):
                raise self.refuse(name, "only results are concatenated, along their channels")
            return Node("cat", [self.known[id(each)] for each in args[0]])
        if name in SCALAR and kwargs.get("alpha", 1) == 1 and not (name in ("add", "sub") and len(args) > 2):
            return self._arithmetic(name, args)
        if name == "constant_pad_nd":
            pads = list(args[1])
            if len(pads) > 2 * (args[0].dim() - 2):
                raise self.refuse(name, "channels are padded")
            value = float(args[2]) if len(args) > 2 else 0.0
            return Node("pad", [self.known[id(args[0])]], args=[pads, "constant", value])
        if name in ("mean", "amax") and any(dim % args[0].dim() < 2 for dim in args[1]):
            raise self.refuse(name, "over channels or samples")
        name = RENAMED.get(name, name)
        if name not in FUNCTIONS or any(isinstance(arg, Tensor) for arg in args[1:]):
            raise self.refuse(name)
        values = [list(arg) if isinstance(arg, (list, tuple)) else arg for arg in args[1:]]
        values += [kwargs["approximate"]] if "approximate" in kwargs else []
        return Node(name, [self.known[id(args[0])]], args=values)

    def _parameter(self, tensor: Tensor | None, kind: str) -> str:
        """The name of a parameter; each may be used once."""
        name = self.names.get(id(tensor))
        if name is None:
            raise self.refuse(f"a {kind} that is not a parameter", "it is computed, or shared in another form")
        if name in self.used:
            what = f"{self.place()}: {name} is used twice"
            raise unsupported(what, "Calls of one module would share its units; use a module for each call.")
        self.used[name] = self.place()
        return name

    def _layer(self, name: str, args: Any) -> Node:
        if name == "convolution":
            h, weight, bias, stride, padding, dilation, transposed, _, groups = args
            if transposed or h.dim() not in (3, 4):
                raise self.refuse(f"a {'transposed ' if transposed else ''}convolution of {h.dim() - 2} dimensions")
            geometry = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation), "groups": groups}
        else:
            h, weight = args[-2], self.transposed.get(id(args[-1]))
            bias, geometry = (args[0] if name == "addmm" else None), {}
            if id(h) not in self.known or weight is None:
                raise self.refuse("a product of matrices", "only layers with weights of their own")
        path = self._parameter(weight, "weight").removesuffix(".weight")
        if bias is not None:
            self._parameter(bias, "bias")
        assert weight is not None
        op, kernel = ("conv", list(weight.shape[2:])) if geometry else ("linear", [])
        init = _measure(weight) if self.initialization else GLOROT
        inputs = [self.known[id(h)]]
        return Node(op, inputs, path, [], len(weight), bias is not None, kernel, init=init, **geometry)

    def _norm(self, name: str, args: Any) -> Node:
        h, weight, bias = args[:3]
        if weight is None or bias is None or (name != "native_group_norm" and args[3] is None):
            raise self.refuse(name, "it needs scale, shift and running statistics of its own")
        path = self._parameter(weight, "scale").removesuffix(".weight")
        self._parameter(bias, "shift")
        if name == "native_group_norm":
            _, channels, _, groups, eps = args[3:]
            return Node("group_norm", [self.known[id(h)]], path, [channels // groups, eps])
        return Node("batch_norm", [self.known[id(h)]], path, [args[7], args[6]])

    def _reshape(self, name: str, h: Tensor, out: Tensor) -> Node | int:
        old, new, source = h.shape, out.shape, self.known[id(h)]
        if old == new:
            return source
        if source == 0 and self.input_uses == 0 and new[0] == self.batch and len(self.nodes) == 1:
            self.nodes[0] = Node("input", args=list(new[1:]))  # another view of the input, before anything else
            return 0
        if new[0] != self.batch or len(new) < 2:
            raise self.refuse(name, f"from {tuple(old)} to {tuple(new)}")
        positions = old[2:].numel()
        if len(new) == 2 and new[1] == old[1] * positions:
            return Node("flatten", [source], args=[positions])
        if new[1] == old[1] and new[2:].numel() == positions:
            return Node("reshape", [source], args=list(new[2:]))
        raise self.refuse(name, f"from {tuple(old)} to {tuple(new)} mixes channels and positions")

    def _arithmetic(self, name: str, args: Any) -> Node:
        one, other = args[:2]
        if not isinstance(other, Tensor):
            return Node(SCALAR[name], [self.known[id(one)]], args=[other])
        if id(one) in self.known and id(other) in self.known:
            if one.shape[1] != other.shape[1] or one.dim() != other.dim():
                raise self.refuse(name, f"of {tuple(one.shape)} and {tuple(other.shape)}")
            return Node(name, [self.known[id(one)], self.known[id(other)]])
        h, parameter = (one, other) if id(one) in self.known else (other, one)
        path = self._parameter(parameter, "factor" if name == "mul" else "summand")
        shape = (1,) * (h.dim() - parameter.dim()) + tuple(parameter.shape)
        if name not in ("add", "mul") or shape[0] != 1 or shape[1] != h.shape[1]:
            raise self.refuse(name, f"of {tuple(h.shape)} and {path}, {tuple(parameter.shape)}")
        positions = list(shape[2:]) if any(length > 1 for length in shape[2:]) else []
        value = float(parameter.detach().float().mean()) if parameter.device.type != "meta" else 1.0
        op = "scale" if name == "mul" else "shift"
        return Node(op, [self.known[id(h)]], path, positions, init=Init("normal", value))

    def graph(self, result: Any) -> Graph:
        """What was written down, as far as the result depends on it."""
        if not isinstance(result, Tensor) or self.known.get(id(result)) is None:
            raise unsupported("the network must return one tensor that is computed from its input")
        needed, last = set[int](), self.known[id(result)]
        stack = [last]
        while stack:
            number = stack.pop()
            if number not in needed:
                needed.add(number)
                stack += self.nodes[number].inputs
        order = sorted(needed)
        place = {old: new for new, old in enumerate(order)}
        kept = [Node(**{**vars(self.nodes[i]), "inputs": [place[b] for b in self.nodes[i].inputs]}) for i in order]
        return Graph(tuple(kept))


def _measure(weight: Tensor) -> Init:
    """The distribution that weights seem to come from: uniform ones are never above √3 standard deviations."""
    if weight.device.type == "meta" or weight.numel() < 2:
        return GLOROT
    values = weight.detach().double()
    most, std = float(values.abs().max()), float(values.pow(2).mean().sqrt())
    default = weight[0].numel() ** -0.5  # the bound of PyTorch's own initialization; a sample stays a little below it
    if 0.8 * default < most <= default and most < 2.2 * std:
        return Init("uniform", default)
    return Init("uniform", most) if 0.0 < most < 1.9 * std else Init("normal", std)
