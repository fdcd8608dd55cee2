"""What the hidden units answer to test samples of two classes after the first task (a figure of the paper)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.areas import BRIGHT, words
from spacenet.report.plots.labels import share_text
from spacenet.report.plots.plot import AMOUNT, Plot, new_figure
from spacenet.report.run_data import RunFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CENTRED: dict[str, Any] = {"size": 8, "ha": "center", "va": "center"}
FIRST, LAST = 2, 2
"""Of many layers, so many are shown."""
BRIGHTEST = 98
"""The percentile of a layer's activations that gets the brightest colour: single giants must not darken the rest."""

FAINT = 0.5
"""The exponent of an activation in its colour: faint ones must be seen too."""
FIELD = 0.3
"""The width of the field for silent units, as a part of the others'."""


@dataclass(frozen=True)
class LayerActivations:
    """A hidden layer's answers, (samples, units); units in the order in which they are drawn."""

    name: str
    order: tuple[int, ...]
    """The units' numbers: those that answer to the first class more come first, silent ones last."""
    values: NDArray[np.float32]

    @property
    def share(self) -> float:
        """Units that are active for a sample, in percent of the layer, on average."""
        return 100 * float((self.values > 0).mean())

    @property
    def answering(self) -> int:
        """Units that are active for any sample."""
        return int((self.values > 0).any(0).sum())


@dataclass(frozen=True)
class ActivationsData:
    """What the hidden layers answer to some samples."""

    layers: tuple[LayerActivations, ...]
    """At most the first two and the last two."""
    classes: tuple[tuple[str, int], ...]
    """Labels in the order of the samples, and how many samples each has."""


def activations_data(facts: RunFacts) -> ActivationsData | None:
    """What the run kept; None if that is nothing."""
    labels = np.array(facts.analysis.labels)
    layers = [layer["name"] for layer in facts.metrics["layers"]]  # in the order of computation
    found = sorted(facts.analysis.activations.items(), key=lambda item: layers.index(item[0]))
    if not found or not len(labels):
        return None
    names = list(dict.fromkeys(facts.analysis.labels))
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


def activations_picture(data: ActivationsData) -> Plot:
    """A heat map for each layer."""
    shares = [f"{share_text(layer.share)} of {layer.name}" for layer in data.layers]
    title = f"After task 1, a sample activates {', '.join(shares[:-1])}{' and ' * (len(shares) > 1)}{shares[-1]}"
    samples = " and ".join(f"{words(count, 'sample')} of class {label}" for label, count in data.classes)
    parts = (f"{layer.answering} of {len(layer.order)} units of {layer.name}" for layer in data.layers)
    text = f"Activations for {samples} after task 1. {title}. Active for any of them are {', '.join(parts)}."
    return Plot("activations", title, text, lambda: _draw(data))


def _draw(data: ActivationsData) -> "Figure":
    across = min(2, len(data.layers))
    down = -(-len(data.layers) // across)
    figure = new_figure(2.5 * down + 0.2)
    panels: Any = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(data.layers) :]:
        axes.axis("off")
    for number, (axes, layer) in enumerate(zip(panels.flat, data.layers, strict=False)):
        drawn = _heat(axes, layer, data)
        axes.tick_params(axis="y", length=0)
        if number % across == 0:
            ends = np.cumsum([count for _, count in data.classes])
            middles = [end - count / 2 for end, (_, count) in zip(ends, data.classes, strict=True)]
            axes.set_yticks(middles, [f"class {label}\n{count} samples" for label, count in data.classes])
    bar = figure.colorbar(drawn, ax=panels, shrink=0.8, aspect=30, extend="max", label="activation, for each layer")
    bar.set_ticks([0, 1], labels=["none", "strong"])
    bar.outline.set_visible(False)
    return figure


def _heat(axes: Any, layer: LayerActivations, data: ActivationsData) -> Any:
    """The units that answer; those that never do, if they are many, as one narrow field at the right."""
    samples, units = layer.values.shape
    silent = units - layer.answering
    shown = max(1, layer.answering) if silent > units * FIELD else units
    active = layer.values[layer.values > 0]
    scale = np.percentile(active, BRIGHTEST) if len(active) else 1.0
    drawn = axes.imshow(
        (layer.values[:, :shown] / scale) ** FAINT,
        cmap=AMOUNT,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="none",
        extent=(0, shown, samples, 0),
    )
    for end in np.cumsum([count for _, count in data.classes])[:-1]:
        axes.hlines(end, 0, shown, color=BRIGHT, linewidth=0.8)
    if shown < units:
        end = shown * (1 + FIELD)
        axes.axvspan(shown * 1.02, end, color=drawn.get_cmap()(0), linewidth=0)
        axes.text(shown + (end - shown) / 2, samples / 2, f"{silent}\nunits\nsilent", color=BRIGHT, **CENTRED)
        axes.set_xlim(0, end)
        axes.set_xticks([0, shown])
    axes.set_title(f"{layer.name}: {share_text(layer.share)} of {units} active per sample", size=9)
    axes.set_xlabel(f"units, {'sorted by the class they answer to' if len(data.classes) > 1 else 'the busiest first'}")
    return drawn
