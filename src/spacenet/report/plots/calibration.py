"""The reliability diagram: the accuracy of predictions against their confidence."""

import numpy as np

from spacenet.model.scores import Calibration
from spacenet.report.evaluation_tables import calibration_table
from spacenet.report.plots.plot import INK, MUTED, PALETTE, Figure, Plot, new_figure

CALIBRATED = 2.0  # points between mean confidence and accuracy up to which neither is called the higher one


def calibration_plot(calibration: Calibration | None) -> Plot | None:
    """Bars of the accuracy in each range of confidence; None if nothing is known."""
    if calibration is None or not calibration.samples:
        return None
    confidence, accuracy, ece = calibration.mean_confidence, calibration.accuracy, calibration.ece
    gap = confidence - accuracy
    verdict = "overconfident" if gap > 0 else "underconfident"
    if abs(gap) <= CALIBRATED:
        verdict = "as sure as it is right" if ece <= 2 * CALIBRATED else "well calibrated on average only"
    title = f"The model is {verdict}: mean confidence {confidence:.1f} %, accuracy {accuracy:.1f} % (ECE {ece:.1f})"
    text = (
        "Bars of the accuracy of predictions by their confidence, the probability of the predicted class. "
        f"Mean confidence {confidence:.1f} %, accuracy {accuracy:.1f} %, expected calibration error {ece:.1f} points."
    )
    return Plot("calibration", title, text, lambda: _draw(calibration), calibration_table(calibration))


def _draw(calibration: Calibration) -> Figure:
    """Above the accuracy in each range of confidence, below how many predictions are in it."""
    figure = new_figure(4.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    edges = np.linspace(0, 100, len(calibration.bins) + 1)
    middles, width = (edges[:-1] + edges[1:]) / 2, 0.92 * edges[1]
    accuracy = [100 * each.right / each.samples if each.samples else np.nan for each in calibration.bins]
    share = [100 * each.samples / calibration.samples for each in calibration.bins]
    above.bar(middles, accuracy, width, color=PALETTE[0], label="accuracy")
    above.plot([0, 100], [0, 100], color=INK, lw=1.2, ls="--", label="calibrated: accuracy equals confidence")
    above.set(ylim=(0, 103), ylabel="accuracy in %")
    above.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
    below.bar(middles, share, width, color=MUTED)
    below.set(xlim=(0, 100), xlabel="confidence in %", ylabel="% of the\npredictions")
    for axes in (above, below):
        axes.grid(axis="y")
        axes.set_axisbelow(True)
    return figure
