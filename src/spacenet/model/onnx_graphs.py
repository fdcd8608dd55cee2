"""ONNX graphs put together: how pixels are normalized, an encoder that is an ONNX file, and the head behind it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spacenet.encoders.inputs import ImageInput
from spacenet.utils.extras import require_extra


def opset_of(model: Any) -> int:
    """The version of ONNX's own operators that a graph uses."""
    return max((int(each.version) for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)


def read_graph(content: bytes, opset: int) -> Any:
    """The graph in a file, with operators of at least this version."""
    model = require_extra("to onnx", "export", "onnx").load_model_from_string(content)
    if opset_of(model) < opset:
        converter = require_extra("to onnx", "export", "onnx.version_converter")
        model = converter.convert_version(model, opset)
    return model


def put_before(encoder: Any, images: ImageInput, head: Any) -> Any:
    """One graph that takes images as bytes, from an encoder's graph and a head that takes its features.

    Its input and its outputs have the names of the head's.
    """
    onnx = require_extra("to onnx", "export", "onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    taken, given = head.graph.input[0].name, list(head.graph.output)
    body, head = (_prefixed(model, prefix) for model, prefix in ((encoder, "encoder/"), (head, "head/")))
    held = {each.name for each in body.graph.initializer}
    (pixels,) = (each.name for each in body.graph.input if each.name not in held)
    front = [
        helper.make_node("Cast", [taken], ["pixels/float"], to=kinds.FLOAT),
        helper.make_node("Div", ["pixels/float", "pixels/most"], ["pixels/scaled"]),
        helper.make_node("Sub", ["pixels/scaled", "pixels/mean"], ["pixels/centered"]),
        helper.make_node("Div", ["pixels/centered", "pixels/std"], [pixels]),
    ]
    back = [
        helper.make_node("Flatten", [body.graph.output[0].name], ["features/all"], axis=1),
        *_mask(helper, kinds, "features/all", head.graph.input[0].name),
    ]
    last = [helper.make_node("Identity", [f"head/{each.name}"], [each.name]) for each in given]
    graph = helper.make_graph(
        [*front, *body.graph.node, *back, *head.graph.node, *last],
        "spacenet",
        [helper.make_tensor_value_info(taken, kinds.UINT8, ["batch", *images.shape])],
        given,
        [*_constants(onnx, images), *body.graph.initializer, *head.graph.initializer],
        sparse_initializer=[*body.graph.sparse_initializer, *head.graph.sparse_initializer],
    )
    made = helper.make_model(graph, opset_imports=_opsets(helper, [body, head]))
    made.functions.extend([*body.functions, *head.functions])
    made.ir_version = max(body.ir_version, head.ir_version)
    return made


def _mask(helper: Any, kinds: Any, features: str, masked: str) -> list[Any]:
    """The nodes of `ImageInput.mask`."""
    return [
        helper.make_node("ReduceMax", ["pixels/float", "pixels/sides"], ["pixels/highest"], keepdims=0),
        helper.make_node("ReduceMin", ["pixels/float", "pixels/sides"], ["pixels/lowest"], keepdims=0),
        helper.make_node("Sub", ["pixels/highest", "pixels/lowest"], ["pixels/range"]),
        helper.make_node("ReduceMax", ["pixels/range", "pixels/channels"], ["pixels/widest"], keepdims=1),
        helper.make_node("Cast", ["pixels/widest"], ["pixels/vary"], to=kinds.BOOL),
        helper.make_node("Where", ["pixels/vary", features, "features/none"], [masked]),
    ]


def _prefixed(model: Any, prefix: str) -> Any:
    """The graph with names that no other graph has."""
    return require_extra("to onnx", "export", "onnx.compose").add_prefix(model, prefix)


def _constants(onnx: Any, images: ImageInput) -> list[Any]:
    values = {"most": [255.0], "mean": images.mean, "std": images.std}
    arrays = {name: np.array(each, np.float32).reshape(-1, 1, 1) for name, each in values.items()}
    arrays |= {"sides": np.array([2, 3]), "channels": np.array([1])}
    made = {f"pixels/{name}": array for name, array in arrays.items()} | {"features/none": np.zeros((), np.float32)}
    return [onnx.numpy_helper.from_array(array, name) for name, array in made.items()]


def _opsets(helper: Any, models: Sequence[Any]) -> list[Any]:
    """The operators that the graphs use. Those of ONNX have one version in both, which `read_graph` has seen to."""
    versions = {each.domain: each.version for model in models for each in model.opset_import}
    return [helper.make_opsetid(domain, version) for domain, version in versions.items()]
