"""The pictures of the space: what a run's network holds, whose it is, and how it came to lie there."""

from spacenet.report.plots.activations import activations_data, activations_picture
from spacenet.report.plots.capacity import capacity_data, capacity_picture
from spacenet.report.plots.compaction import compaction_data, compaction_picture
from spacenet.report.plots.connections import (
    connections_data,
    connections_picture,
    rewiring_data,
    rewiring_picture,
)
from spacenet.report.plots.inputs import inputs_data, inputs_picture
from spacenet.report.plots.plot import Plot
from spacenet.report.run_data import RunFacts


def space_pictures(facts: RunFacts, beside: RunFacts | None = None) -> list[Plot]:
    """Those that make sense for the run. `beside` is a static-sparse run to compare its inputs with."""
    plots = []
    if (capacity := capacity_data(facts)) is not None:
        plots.append(capacity_picture(capacity))
    if (links := connections_data(facts)) is not None:
        plots.append(connections_picture(links))
    if (rewiring := rewiring_data(facts)) is not None:
        plots.append(rewiring_picture(rewiring))
    if (compaction := compaction_data(facts)) is not None:
        plots.append(compaction_picture(compaction))
    if (activations := activations_data(facts)) is not None:
        plots.append(activations_picture(activations))
    if (inputs := inputs_data(facts, beside)) is not None:
        plots.append(inputs_picture(inputs))
    return plots
