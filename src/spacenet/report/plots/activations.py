"""The activations of the hidden units for test samples of two classes after the first task (a figure of the paper)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import BRIGHT, CENTERED, draw_color_bar, share_text
from spacenet.report.plots.plot import COLORMAP, Figure, Plot, new_figure
from spacenet.utils.text import plural

FIRST, LAST = 2, 2  # layers that are shown of many
BRIGHTEST = 98  # the percentile of a layer's activations with the brightest color: outliers must not darken the rest
EXPONENT = 0.5  # of an activation in its color, so that small ones are visible
INACTIVE_WIDTH = 0.3  # of the field for inactive units, relative to the others


@dataclass(frozen=True)
class LayerActivations:
    """The activations of a hidden layer, (samples, units); units in the order in which they are drawn."""

    name: str
    order: tuple[int, ...]
    """The units' indices: those that respond more to the first class come first, inactive ones last."""
    values: NDArray[np.float32]

    @property
    def share(self) -> float:
        """Units that are active for a sample, in percent of the layer, on average."""
        return 100 * float((self.values > 0).mean())

    @property
    def active(self) -> int:
        """Units that are active for any sample."""
        return int((self.values > 0).any(0).sum())


@dataclass(frozen=True)
class ActivationsData:
    """The activations of the hidden layers for some samples."""

    layers: tuple[LayerActivations, ...]  # at most the first two and the last two
    classes: tuple[tuple[str, int], ...]  # labels in the order of the samples, and how many samples each has


def activations_data(run: RunData) -> ActivationsData | None:
    """What the run recorded; None if that is nothing."""
    labels = np.array(run.analysis.labels)
    layers = [layer["name"] for layer in run.metrics["layers"]]  # in the order of computation
    found = sorted(run.analysis.activations.items(), key=lambda item: layers.index(item[0]))
    if not found or not len(labels):
        return None
    names = list(dict.fromkeys(run.analysis.labels))
    shown = found if len(found) <= FIRST + LAST else found[:FIRST] + found[-LAST:]
    sorted_layers = tuple(_layer(name, values.numpy(), labels == names[0]) for name, values in shown)
    return ActivationsData(sorted_layers, tuple((name, int((labels == name).sum())) for name in names))


def _layer(name: str, values: NDArray[np.float32], first: NDArray[np.bool_]) -> LayerActivations:
    one = values[first].mean(0)
    other = values[~first].mean(0) if not first.all() else np.zeros_like(one)
    total = one + other
    preference = np.divide(one - other, total, out=np.full_like(one, -2.0), where=total > 0)
    order = np.lexsort((-total, -preference))
    return LayerActivations(name, tuple(order.tolist()), values[:, order])


def activations_plot(data: ActivationsData) -> Plot:
    """A heat map for each layer."""
    shares = [f"{share_text(layer.share)} of {layer.name}" for layer in data.layers]
    title = f"After task 1, a sample activates {', '.join(shares[:-1])}{' and ' * (len(shares) > 1)}{shares[-1]}"
    samples = " and ".join(f"{plural(count, 'sample')} of class {label}" for label, count in data.classes)
    parts = (f"{layer.active} of {len(layer.order)} units of {layer.name}" for layer in data.layers)
    active = f"Active for any of them are {', '.join(parts)}."
    text = f"Heat maps of the activations for {samples} after task 1. {title}. {active}"
    return Plot("activations", title, text, lambda: _draw(data))


def _draw(data: ActivationsData) -> Figure:
    across = min(2, len(data.layers))
    down = -(-len(data.layers) // across)
    figure = new_figure(2.5 * down + 0.2)
    panels: Any = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(data.layers) :]:
        axes.axis("off")
    ends = np.cumsum([count for _, count in data.classes])
    for axes, layer in zip(panels.flat, data.layers, strict=False):
        image = _draw_layer(axes, layer, ends[:-1])
        axes.tick_params(axis="y", length=0)
    middles = [end - count / 2 for end, (_, count) in zip(ends, data.classes, strict=True)]
    for axes in panels[:, 0]:
        axes.set_yticks(middles, [f"class {label}\n{count} samples" for label, count in data.classes])
    bar = draw_color_bar(panels, image, "activation, scaled per layer", 30, shrink=0.8, extend="max")
    bar.set_ticks([0, 1], labels=["none", "strong"])
    return figure


def _draw_layer(axes: Any, layer: LayerActivations, ends: NDArray[np.int64]) -> Any:
    """The active units; if many are inactive, these are one narrow field at the right. A line after each class."""
    samples, units = layer.values.shape
    inactive = units - layer.active
    shown = max(1, layer.active) if inactive > units * INACTIVE_WIDTH else units
    positive = layer.values[layer.values > 0]
    colors = (layer.values[:, :shown] / (np.percentile(positive, BRIGHTEST) if len(positive) else 1.0)) ** EXPONENT
    style: dict[str, Any] = {"cmap": COLORMAP, "vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "none"}
    image = axes.imshow(colors, extent=(0, shown, samples, 0), **style)
    axes.hlines(ends, 0, shown, color=BRIGHT, linewidth=0.8)
    if shown < units:
        right = shown * (1 + INACTIVE_WIDTH)
        axes.axvspan(shown * 1.02, right, color=image.get_cmap()(0), linewidth=0)
        text = f"{inactive}\nunits\ninactive"
        axes.text((shown + right) / 2, samples / 2, text, color=BRIGHT, size=8, **CENTERED)
        axes.set(xlim=(0, right), xticks=[0, shown])
    axes.set_title(f"{layer.name}: {share_text(layer.share)} of {units} active per sample", size=9)
    axes.set_xlabel(f"units, {'sorted by the class they respond to' if len(ends) else 'the most active first'}")
    return image
