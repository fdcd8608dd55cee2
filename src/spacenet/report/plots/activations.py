"""The activations of the hidden units for test samples of two classes after the first task (a figure of the paper)."""

from collections import Counter
from collections.abc import Mapping
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
Activations = NDArray[np.float32]
"""Of a layer, (samples, units): units that respond more to the first class come first, inactive ones last."""


def layer_activations(run: RunData) -> dict[str, Activations]:
    """What the run recorded, in the order of computation; of many layers the first and the last ones."""
    found, labels = run.analysis.activations, np.array(run.analysis.labels)
    names = [layer["name"] for layer in run.metrics["layers"] if layer["name"] in found] if len(labels) else []
    shown = names if len(names) <= FIRST + LAST else names[:FIRST] + names[-LAST:]
    return {name: _sort_units(found[name].numpy(), labels == labels[0]) for name in shown}


def share_active(values: Activations) -> float:
    """Units that are active for a sample, in percent of the layer, on average."""
    return 100 * float((values > 0).mean())


def count_active(values: Activations) -> int:
    """Units that are active for any sample."""
    return int((values > 0).any(0).sum())


def _sort_units(values: Activations, first: NDArray[np.bool_]) -> Activations:
    one = values[first].mean(0)
    other = values[~first].mean(0) if not first.all() else np.zeros_like(one)
    total = one + other
    preference = np.divide(one - other, total, out=np.full_like(one, -2.0), where=total > 0)
    return values[:, np.lexsort((-total, -preference))]


def activations_plot(run: RunData) -> Plot | None:
    """A heat map for each layer; None if the run recorded nothing."""
    layers, classes = layer_activations(run), Counter(run.analysis.labels)
    if not layers:
        return None
    shares = [f"{share_text(share_active(values))} of {name}" for name, values in layers.items()]
    title = f"After task 1, a sample activates {', '.join(shares[:-1])}{' and ' * (len(shares) > 1)}{shares[-1]}"
    samples = " and ".join(f"{plural(count, 'sample')} of class {label}" for label, count in classes.items())
    parts = (f"{count_active(values)} of {values.shape[1]} units of {name}" for name, values in layers.items())
    active = f"Active for any of them are {', '.join(parts)}."
    text = f"Heat maps of the activations for {samples} after task 1. {title}. {active}"
    return Plot("activations", title, text, lambda: _draw(layers, classes))


def _draw(layers: Mapping[str, Activations], classes: Mapping[str, int]) -> Figure:
    """`classes`: how many samples each has, in their order."""
    across = min(2, len(layers))
    down = -(-len(layers) // across)
    figure = new_figure(2.5 * down + 0.2)
    panels: Any = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(layers) :]:
        axes.axis("off")
    counts = np.array(list(classes.values()))
    ends = counts.cumsum()
    for axes, (name, values) in zip(panels.flat, layers.items(), strict=False):
        image = _draw_layer(axes, name, values, ends[:-1])
        axes.tick_params(axis="y", length=0)
    for axes in panels[:, 0]:
        axes.set_yticks(ends - counts / 2, [f"class {label}\n{count} samples" for label, count in classes.items()])
    bar = draw_color_bar(panels, image, "activation, scaled per layer", 30, shrink=0.8, extend="max")
    bar.set_ticks([0, 1], labels=["none", "strong"])
    return figure


def _draw_layer(axes: Any, name: str, values: Activations, ends: NDArray[np.int64]) -> Any:
    """The active units; if many are inactive, these are one narrow field at the right. A line after each class."""
    (samples, units), active, positive = values.shape, count_active(values), values[values > 0]
    shown = max(1, active) if units - active > units * INACTIVE_WIDTH else units
    colors = (values[:, :shown] / (np.percentile(positive, BRIGHTEST) if len(positive) else 1.0)) ** EXPONENT
    style: dict[str, Any] = {"cmap": COLORMAP, "vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "none"}
    image = axes.imshow(colors, extent=(0, shown, samples, 0), **style)
    axes.hlines(ends, 0, shown, color=BRIGHT, linewidth=0.8)
    if shown < units:
        right = shown * (1 + INACTIVE_WIDTH)
        axes.axvspan(shown * 1.02, right, color=image.get_cmap()(0), linewidth=0)
        text = f"{units - active}\nunits\ninactive"
        axes.text((shown + right) / 2, samples / 2, text, color=BRIGHT, size=8, **CENTERED)
        axes.set(xlim=(0, right), xticks=[0, shown])
    axes.set_title(f"{name}: {share_text(share_active(values))} of {units} active per sample", size=9)
    axes.set_xlabel(f"units, {'sorted by the class they respond to' if len(ends) else 'the most active first'}")
    return image
