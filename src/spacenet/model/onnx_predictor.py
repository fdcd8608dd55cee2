"""Predict with an ONNX file that `spacenet export MODEL --to onnx` wrote. It needs onnxruntime and numpy, nothing else.

Copy this file into your project; `spacenet export --with-loader` puts it beside the model. It is part of spacenet and
under its license (MIT).

    predictor = OnnxPredictor("model.onnx")
    predictor.predict(x)           # the label of each sample; unknown samples have a label of their own
    predictor.predict_proba(x)     # (n, classes); columns as in predictor.classes
    predictor.unknown(x)           # (n,), of files written with --unknown
"""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime

Array = np.ndarray[Any, Any]
FACTS = ("classes", "input_shape", "tasks", "spacenet", "unknown", "encoder", "images")
"""The metadata of a file; the last three are there if the model has them."""


class OnnxPredictor:
    """A classifier in an ONNX file. Samples are arrays (n, *input_shape); labels come from the file's metadata."""

    def __init__(self, path: "str | os.PathLike[str]", threads: int = 0, batch_size: int = 1024) -> None:
        """`threads` is how many compute at a time, by default as many as onnxruntime chooses."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # weights in 8 bits: to 32 when it is loaded
        self._session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        texts = self._session.get_modelmeta().custom_metadata_map
        if "classes" not in texts:
            raise ValueError(f"{os.fspath(path)} has no labels; was it written by spacenet export?")
        self.facts: dict[str, Any] = {name: json.loads(texts[name]) for name in FACTS if name in texts}
        """What the file says of itself."""
        self.classes: list[Any] = self.facts["classes"]
        self.input_shape = tuple(self.facts["input_shape"])
        self.rate: float | None = self.facts.get("unknown")
        """The fraction of samples of known classes that is called unknown, if the file tells unknown samples."""
        self.batch_size = batch_size
        self._takes_bytes = self._session.get_inputs()[0].type == "tensor(uint8)"

    def predict(self, x: Array, unknown_label: Any = None) -> list[Any]:
        """The label of each sample. Unknown ones get `unknown_label`, by default -1 if all labels are numbers and
        otherwise "unknown"."""
        names = ["probabilities"] if self.rate is None else ["probabilities", "unknown"]
        found = self._run(x, names)
        labels = [self.classes[number] for number in found[0].argmax(1)]
        if self.rate is None:
            return labels
        if unknown_label is None:
            numbers = all(isinstance(label, int | float) and not isinstance(label, bool) for label in self.classes)
            unknown_label = -1 if numbers else "unknown"
        if any(type(label) is type(unknown_label) and label == unknown_label for label in self.classes):
            raise ValueError(f"{unknown_label!r} is one of the classes; choose another unknown_label")
        return [unknown_label if strange else label for label, strange in zip(labels, found[1].tolist(), strict=True)]

    def predict_proba(self, x: Array) -> Array:
        """The probability of each class, (n, classes)."""
        return self._run(x, ["probabilities"])[0]

    def unknown(self, x: Array) -> Array:
        """Which samples are like no class, (n,): as many of those of known classes as `rate` says, too."""
        return self._run(x, ["unknown"])[0]

    def typicality(self, x: Array) -> Array:
        """For each sample, about the fraction of its class's own samples that are less typical, (n,)."""
        return self._run(x, ["typicality"])[0]

    def prepare_image(self, image: Any) -> Array:
        """A Pillow image as one sample: its middle square, resized. Only for files that take images as bytes."""
        from PIL import Image, ImageOps

        if "images" not in self.facts:
            raise ValueError("this file takes no images as bytes")
        size, crop, method = (self.facts["images"][name] for name in ("size", "crop", "interpolation"))
        image = (ImageOps.exif_transpose(image) or image).convert("RGB")
        side = max(min(*image.size, size), crop * min(image.size))
        left, top = ((length - side) / 2 for length in image.size)
        filter_ = Image.Resampling[method.upper()]
        pixels = np.asarray(image.resize((size, size), filter_, box=(left, top, left + side, top + side)))
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def _run(self, x: Array, names: Sequence[str]) -> list[Array]:
        if self.rate is None and names != ["probabilities"]:
            raise ValueError("this file does not tell unknown samples; write it with spacenet export --unknown 0.05")
        x = self._check(np.asarray(x))
        some = x if len(x) else np.zeros((1, *x.shape[1:]), x.dtype)  # runtimes fail on batches of none
        parts = np.split(some, range(self.batch_size, len(some), self.batch_size))
        found = [self._session.run(list(names), {"input": part}) for part in parts]
        return [np.concatenate(each)[: len(x)] for each in zip(*found, strict=True)]

    def _check(self, x: Array) -> Array:
        if x.shape[1:] != self.input_shape or x.ndim != len(self.input_shape) + 1:
            raise ValueError(f"samples have the shape {x.shape[1:]}; the model takes (n, *{self.input_shape})")
        if x.dtype.kind not in "biuf":
            raise ValueError(f"samples are {x.dtype}; numbers are needed")
        if self._takes_bytes and x.dtype != np.uint8:
            raise ValueError(f"samples are {x.dtype}; the model takes images as bytes (uint8), see prepare_image")
        with np.errstate(over="ignore"):  # what is too large is infinite, and unknown
            return np.ascontiguousarray(x if self._takes_bytes else x.astype(np.float32))
