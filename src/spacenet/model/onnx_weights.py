"""The weights of an ONNX graph in 8 bits: a quarter of the size, and computations stay in 32 bits.

Each output unit has a scale of its own. Activations are not quantized: without samples of the classes learned there is
nothing to find their ranges on, and ranges that are found in use cost more accuracy and time in convolutions;
`python -m benchmarks.quantized` compares. Runtimes turn the weights into 32 bits when they load the file or
when they use them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spacenet.errors import SpacenetError
from spacenet.utils.extras import require_extra

LEAST = 64
"""Fewer weights are left as they are: their names and scales would take as much as they save."""
LARGEST = 127
QUANTIZED, SCALE = "/int8", "/scale"


def quantize_weights(content: bytes) -> bytes:
    """An ONNX file whose weights have 8 bits."""
    onnx = require_extra("to onnx", "export", "onnx")
    model = onnx.load_model_from_string(content)
    graph, axes = model.graph, _find_weights(model.graph)
    kept, restored = [], []
    for held in graph.initializer:
        axis = axes.get(held.name)
        many = np.prod(held.dims) >= LEAST and held.data_type == onnx.TensorProto.FLOAT
        if axis is None or not many:
            kept.append(held)
            continue
        numbers, scale = _quantize(onnx.numpy_helper.to_array(held), axis)
        names = [held.name + QUANTIZED, held.name + SCALE]
        kept += [onnx.numpy_helper.from_array(each, name) for each, name in zip((numbers, scale), names, strict=True)]
        restored.append(onnx.helper.make_node("DequantizeLinear", names, [held.name], axis=axis))
    if not restored:
        raise SpacenetError(
            f"nothing can be quantized: the network has no matrix of at least {LEAST} weights in 32 bits (class "
            "statistics of tables are computed in 64)"
        )
    nodes = [*restored, *graph.node]
    for field, values in ((graph.node, nodes), (graph.initializer, kept)):
        del field[:]
        field.extend(values)
    return bytes(model.SerializeToString())


def _find_weights(graph: Any) -> Mapping[str, int]:
    """The second inputs of convolutions and matrix products, and nothing else's, with the axis of their outputs."""
    axes: dict[str, set[int | None]] = {}
    ranks = {held.name: len(held.dims) for held in graph.initializer}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in ranks:
                axes.setdefault(name, set()).add(_axis(node, ranks[name]) if place == 1 else None)
    for each in graph.output:
        axes.pop(each.name, None)
    found = {name: next(iter(own)) for name, own in axes.items() if len(own) == 1}
    return {name: axis for name, axis in found.items() if axis is not None}


def _axis(node: Any, rank: int) -> int | None:
    if node.op_type == "Conv":
        return 0
    if node.op_type == "MatMul" and rank == 2:
        return 1
    if node.op_type == "Gemm":
        transposed = any(each.name == "transB" and each.i for each in node.attribute)
        return 0 if transposed else 1
    return None


def _quantize(weights: Any, axis: int) -> tuple[Any, Any]:
    others = tuple(each for each in range(weights.ndim) if each != axis)
    scale = np.maximum(np.abs(weights).max(others) / LARGEST, np.finfo(np.float32).tiny).astype(np.float32)
    numbers = np.rint(weights / np.expand_dims(scale, others)).clip(-LARGEST, LARGEST)
    return numbers.astype(np.int8), scale
