"""The tables of runs, comparisons, models and data sets. Importing this module imports no heavy library."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from spacenet.experiments.metric_names import METRIC_NAMES, explain_metrics
from spacenet.report.table import Table as Table
from spacenet.utils.significance import LEVEL, MIN_SEEDS, Seeds, find_best
from spacenet.utils.text import MeanStd, format_bytes, format_seconds, plural, printable

if TYPE_CHECKING:
    from spacenet.data.datasets import DatasetListing
    from spacenet.experiments.comparison import ComparisonData, Row
    from spacenet.experiments.run import RunData
    from spacenet.experiments.sweep import Trial
    from spacenet.methods.density.densities import ClassMemory
    from spacenet.model.inspection import Inspection
    from spacenet.space.blueprint import Layer, Link

MAX_LABELS = 20  # labels that are listed; of more only the first ones
MAX_TRIALS = 10  # trials of a search that are shown
MANY_TASKS = 100  # a forecast of how many more tasks fit goes no further
REPRESENTATIONS = {"edges": "edges of images", "features": "features of the first task"}


def _over_seeds(key: str, row: "Row") -> str:
    figure: MeanStd | None = getattr(row, key)
    return "" if figure is None else str(figure)


COMPARED = ("acc", "last_acc", "aia", "bwt", "forgetting", "task_il_acc")
"""The metrics in the table of a comparison, as columns with their standard deviation over the seeds. The last accuracy
is left out where it is ACC: where all tasks have as many test samples."""
ACC, LAST = METRIC_NAMES["acc"].heading, METRIC_NAMES["last_acc"].heading
COMPARISON_COLUMNS: "dict[str, Callable[[Row], str]]" = {
    "method": lambda row: row.method,
    "strategy": lambda row: row.strategy,
    **{METRIC_NAMES[key].heading: partial(_over_seeds, key) for key in COMPARED},
    "parameters": lambda row: f"{row.parameters:,}",
    "extra memory": lambda row: format_bytes(row.extra_bytes) if row.extra_bytes else "none",
    "stored samples": lambda row: f"{row.images:,}",
    "units added": lambda row: f"{row.units_added:,}",
    "time": lambda row: format_seconds(row.seconds) if row.relative_time is None else f"{row.relative_time:.1f} ×",
}
COMPARISON_LEGEND = (
    f"{explain_metrics(*COMPARED)} Extra memory: kept from task to task besides the network, with the stored samples "
    "as the data set has them (one byte a pixel). Units added: growth of the network. Time: training and evaluation"
)
REGULARIZATION_NOTE = (
    "Regularization methods that remember only the last task here owe that to a choice of loss: without old data, a "
    "cross-entropy over all classes seen so far pushes the scores of old classes down on every new sample. The setting "
    "`loss_over` own leaves them alone. Task-incremental accuracy shows what these methods do remember."
)
BEST_NOTE = (
    "Bold: the best ACC, and every other that does not differ from it significantly, by a two-sided t-test "
    f"at {LEVEL * 100:.0f} %, paired where both have the same seeds; each method tested by itself; bounds take no part."
)
UNTESTED_NOTE = f"No ACC is marked as the best: differences are tested with at least {MIN_SEEDS} seeds."


def run_tables(data: "RunData") -> list[Table]:
    """The accuracy matrix, the layers of the network if there is one, and the summary; empty if no task was learned."""
    if not data.metrics["tasks_learned"]:
        return []
    layers = [layers_table(data)] if data.metrics["layers"] else []
    return [matrix_table(data), *layers, summary_table(data)]


def matrix_table(*runs: "RunData") -> Table:
    """The accuracy matrix, of several runs mean ± standard deviation; cells of tasks still to come, and of accuracies
    that were not measured, are blank."""
    labels = runs[0].labels
    columns = ["after task", *(f"{i + 1} ({shorten_labels(each)})" for i, each in enumerate(labels))]
    matrices = [run.metrics["matrix"] for run in runs]
    rows = [
        [
            str(j + 1),
            *(_accuracy_text([matrix[j][i] for matrix in matrices]) if i <= j else "" for i in range(len(labels))),
        ]
        for j in range(len(matrices[0]))
    ]
    return Table("Accuracy in % on each task, among all classes seen so far", columns, rows)


def _accuracy_text(values: Sequence[float | None]) -> str:
    """One accuracy, or the mean ± standard deviation of several; blank where nothing was measured."""
    measured = [value for value in values if value is not None]
    if not measured:
        return ""
    figure = MeanStd.of(measured)
    return f"{figure.mean:.1f}" + (f" ± {figure.std:.1f}" if len(measured) > 1 else "")


def layers_table(data: "RunData") -> Table:
    """How much of each layer is in use."""
    fields = ("units", "used", "reserved", "unused", "connections")
    rows = [[layer["name"], *(f"{layer[field]:,}" for field in fields)] for layer in data.metrics["layers"]]
    return Table("Layers", ["layer", *fields[:-1], "connections in"], rows)


def network_table(name: str, layers: "Sequence[Layer]", links: "Sequence[Link]") -> Table:
    """The layers of a network, and what each reads."""
    sizes, rows = {layer.name: layer.size for layer in layers}, []
    for layer in layers:
        units = "1 per class" if layer is layers[-1] else f"{layer.size:,}"
        values = sum(math.prod(value.shape) for value in layer.unit_values)
        entering: list[Link | None] = [link for link in links if link.target == layer.name]
        for number, link in enumerate(entering or [None]):
            first = ["", "", ""] if number else [layer.name, units, str(values)]
            rows.append([*first, *_link_cells(link, sizes)])
    hidden = sum(layer.size for layer in layers[1:-1])
    columns = ["layer", "units", "values per unit", "reads", "weights per connection", "connections"]
    return Table(f"{name}: {plural(hidden, 'hidden unit')}", columns, rows, "lrrl")


def _link_cells(link: "Link | None", sizes: Mapping[str, int]) -> list[str]:
    if link is None:
        return [""] * 3
    count = sizes[link.source] * sizes[link.target]
    weights = "×".join(map(str, link.kernel)) or "1"
    return [link.source, weights, f"{count:,}" if count else f"{sizes[link.source]:,} per class"]


def summary_table(data: "RunData") -> Table:
    """The metrics of one run."""
    metrics, images = data.metrics, data.metrics["images_kept"]
    stored = f"with {plural(images, 'stored sample')}" if images else "no stored samples"
    rows = [
        *([each.name, each.format(metrics[key]), each.meaning] for key, each in METRIC_NAMES.items() if key in metrics),
        ["connections", f"{metrics['connections']:,}", "in the whole network"],
        ["memory", format_bytes(metrics["bytes_kept"]), f"kept between tasks, {stored}"],
        ["time", format_seconds(metrics["seconds"]), "training and evaluation"],
    ]
    return Table(f"{metrics['method']} on {metrics['stream']}, seed {metrics['seed']}", [], rows, "lrl")


def seeds_table(runs: "Sequence[RunData]") -> Table:
    """The metrics of each seed, then mean ± standard deviation."""
    found = [run.metrics for run in sorted(runs, key=lambda run: run.config.model.seed)]
    keys = {**{METRIC_NAMES[key].heading: key for key in COMPARED}, "seconds": "seconds"}
    if all(f"{each['last_acc']:.2f}" == f"{each['acc']:.2f}" for each in found):
        del keys[LAST]
    rows = [[str(each["seed"]), *(f"{each[key]:z.2f}" for key in keys.values())] for each in found]
    if len(found) > 1:
        columns = [[float(each[key]) for each in found] for key in keys.values()]
        rows.append(["mean ± std", *(str(MeanStd.of(values)) for values in columns)])
    first = found[0]
    title = f"{first['method']} on {first['stream']}, {plural(len(runs), 'seed')} ({first['evaluated_on']})"
    return Table(title, ["seed", *keys], rows)


def comparison_table(data: "ComparisonData", accs: Mapping[str, Seeds] | None = None) -> Table:
    """One row per method, as in the paper's tables 2 and 3. The best ACC, and those that do not differ from it
    significantly, are bold. `accs` has each method's ACC by seed where the comparison is without its runs."""
    from spacenet.experiments.comparison import REFERENCE

    std = ", mean ± standard deviation" if any(row.seeds > 1 for row in data.rows) else ""
    title = f"{data.stream}, {seeds_text(data.seeds)}{std} ({data.evaluated_on})"
    relative = any(row.relative_time is not None for row in data.rows)
    notes = [COMPARISON_LEGEND + (f", as a multiple of {REFERENCE}'s." if relative else ".")]
    if any(row.strategy == "Regularization" and row.acc.mean < row.task_il_acc.mean / 2 for row in data.rows):
        notes.append(REGULARIZATION_NOTE)  # readers may take it for a mistake
    accs = accs or data.accs
    rivals = {row.method: accs[row.method] for row in data.rows if row.strategy != "Bound" and row.method in accs}
    best = find_best(rivals)
    if len(rivals) > 1:
        notes.append(f"{BEST_NOTE} Here: {', '.join(best)}." if best else UNTESTED_NOTE)
    cells = {name: [text(row) for row in data.rows] for name, text in COMPARISON_COLUMNS.items()}
    if cells[LAST] == cells[ACC]:
        del cells[LAST]
    known = {name: column for name, column in cells.items() if any(column) or not column}
    bold = [(number, list(known).index(ACC)) for number, row in enumerate(data.rows) if row.method in best]
    return Table(title, list(known), list(zip(*known.values(), strict=True)), "ll", notes, bold)


def sweep_table(trials: "Sequence[Trial]") -> Table:
    """The best trials of a search, the best first."""
    scored = sorted((trial for trial in trials if trial.score is not None), key=lambda trial: -(trial.score or 0.0))
    rows = [[str(trial.number + 1), f"{trial.score:.2f}", str(trial)] for trial in scored[:MAX_TRIALS]]
    title = f"The best of {plural(len(trials), 'trial')} (held-out data)"
    return Table(title, ["trial", "ACC %", "settings"], rows, "lrl")


def seeds_text(seeds: Sequence[int]) -> str:
    """How many seeds, or which one."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else plural(len(seeds), "seed")


def datasets_table(listings: "Iterable[DatasetListing]") -> Table:
    """The data sets that are known by name, and where they are."""
    rows = [
        [each.name, str(each.classes), f"{each.train:,}", f"{each.test:,}", "×".join(map(str, each.shape)), each.status]
        for each in listings
    ]
    return Table("Data sets", ["name", "classes", "train", "test", "shape", "where"], rows, "lrrrrl")


def inspection_tables(found: "Inspection") -> list[Table]:
    """Everything about a model: what it is, its layers, its tasks, its sizes, and what was measured."""
    columns = ["task", "classes", "units reserved", "connections"][: 4 if found.divides_network else 2]
    each = [(f"{t.number}", labels_text(t.classes), f"{t.reserved:,}", f"{t.connections:,}") for t in found.tasks]
    tasks = Table("Tasks", columns, [list(row[: len(columns)]) for row in each], "ll")
    measured = [_measured_table(found)] if found.measured else []
    layers = [_space_table(found) if found.divides_network else _layers_table(found)] if found.layers else []
    return [_model_table(found), *layers, tasks, _sizes_table(found), *measured]


def learned_table(summary: Mapping[str, Any]) -> Table:
    """What a model has learned from new data."""
    rows = [
        ["new classes", labels_text(summary["new_classes"])],
        ["seen before", labels_text(summary["seen_before"])],
        ["connections", f"{summary['connections']:,} ({summary['connections_added']:,} of them new)"],
        ["capacity", capacity_text(summary["tasks_left"])],
        ["time", format_seconds(summary["seconds"])],
    ]
    if summary["accuracy"] is not None:
        rows.append(["accuracy", f"{summary['accuracy']:.2f} % on the test samples"])
    rows.append(["written to", str(summary["written"])])
    added = f"Task {summary['task']} learned" if summary["tasks_added"] else "Known classes updated, without a new task"
    return Table(added, [], rows, "ll")


def tuned_table(summary: Mapping[str, Any]) -> Table:
    """What an encoder was tuned on."""
    rows = [
        ["classes", labels_text(summary["labels"])],
        ["images", f"{summary['images']:,}, seen {plural(summary['epochs'], 'time')}"],
        ["takes", f"images of {summary['size']} × {summary['size']} pixels"],
        ["gives", plural(summary["features"], "feature")],
        ["training accuracy", f"{summary['training_accuracy']:.2f} % in the last epoch"],
        ["time", format_seconds(summary["seconds"])],
        ["written to", f"{summary['path']} ({format_bytes(summary['bytes'])})"],
    ]
    return Table(f"{summary['encoder']} tuned", [], rows, "ll")


def edited_table(summary: Mapping[str, Any]) -> Table:
    """What has changed in a model."""

    def changed(name: str, text: Callable[[int], str]) -> str:
        now, before = text(summary[name]), text(summary[f"{name}_before"])
        return now if now == before else f"{now} (before: {before})"

    rows = [
        ["classes", labels_text(summary["classes"])],
        ["connections", changed("connections", "{:,}".format)],
        ["capacity", capacity_text(summary["tasks_left"])],
        ["file", changed("bytes", format_bytes)],
        ["version before", summary["undo"] or "not kept"],
        ["written to", summary["written"]],
    ]
    return Table(printable(summary["change"]), [], rows, "ll")


def labels_text(labels: Sequence[Any]) -> str:
    """Labels in a row; of very many only the first ones."""
    shown = ", ".join(printable(label) for label in labels[:MAX_LABELS]) or "none"
    return shown if len(labels) <= MAX_LABELS else f"{shown}, … ({len(labels)} in all)"


def shorten_labels(labels: Sequence[str]) -> str:
    """All of a few labels, or the first and the last of many."""
    return ", ".join(labels) if len(labels) <= 3 else f"{labels[0]} … {labels[-1]}"


def capacity_text(tasks_left: int | None, *, needs_old_data: bool = False) -> str:
    """How many more tasks fit into a network; None where it is not divided among tasks."""
    if needs_old_data:
        return "this method can only continue with all old data"
    if tasks_left is None:
        return "not counted: this method does not divide a network among tasks"
    if tasks_left == 0:
        return "no room for another task like the last one"
    least = "at least " if tasks_left == MANY_TASKS else ""
    return f"room for {least}{plural(tasks_left, 'more task')} like the last one"


def chosen_settings_text(chosen: Mapping[str, float]) -> str:
    """Settings that a method chose, with their values."""
    return ", ".join(f"{name} {value:g}" for name, value in chosen.items())


def class_memory_text(memory: "ClassMemory") -> str:
    """What is kept of each class."""
    representation = REPRESENTATIONS.get(memory.representation, memory.representation)
    each = f"{plural(memory.gaussians, 'Gaussian')} × {plural(memory.directions, 'direction')}"
    values = f"{memory.floats:,} values per class, {format_bytes(memory.bytes)} in all"
    return f"{each} on {memory.dimensions:,} {representation}: {values}"


def _model_table(found: "Inspection") -> Table:
    shape, hidden = "×".join(map(str, found.input_shape)), " ".join(map(str, found.hidden))
    rows = [
        ["method", f"{found.method}, seed {found.seed}"],
        ["network", f"{found.net}, hidden layers of {hidden}" if hidden else "none is used"],
        ["input", f"{shape}, {found.inputs_used:,} of {found.inputs:,} units used"],
        ["normalization", found.normalization],
        ["training", _training_text(found.training)],
        ["classes", f"{len(found.classes)}: {labels_text(found.classes)}"],
        ["capacity", capacity_text(found.tasks_left, needs_old_data=found.needs_old_data)],
    ]
    if found.encoder is not None:
        rows.insert(2, ["encoder", found.encoder])
    if found.samples_kept:
        rows.insert(-1, ["samples kept", f"{found.samples_kept:,} of earlier tasks"])
    if found.class_memory is not None:
        rows.insert(-1, ["class statistics", class_memory_text(found.class_memory)])
    if found.chosen_settings:
        rows.insert(-1, ["chosen settings", chosen_settings_text(found.chosen_settings)])
    return Table("Model", [], rows, "ll")


def _space_table(found: "Inspection") -> Table:
    columns = ["layer", "units", "unused", "never selected", "shared", "reserved", "several tasks", "connections"]
    fields = ("units", "unused", "never_selected", "shared", "reserved", "several", "connections")
    rows = [[layer.name, *(_count(getattr(layer, field)) for field in fields)] for layer in found.layers]
    rows.append(["outputs", f"{found.outputs:,}", *[""] * 5, f"{found.outputs_connections:,}"])
    notes = [
        "Unused: without connections. Never selected: of these, units that no task has used, which the paper calls "
        "unused. Shared: in use, and open to later tasks. Several tasks: units with connections of more than one task."
    ]
    return Table("Layers", columns, rows, notes=notes)


def _layers_table(found: "Inspection") -> Table:
    """The layers of a network that is not divided among tasks."""
    rows = [[layer.name, f"{layer.units:,}", f"{layer.connections:,}"] for layer in found.layers]
    rows.append(["outputs", f"{found.outputs:,}", f"{found.outputs_connections:,}"])
    return Table("Layers", ["layer", "units", "connections"], rows)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _sizes_table(found: "Inspection") -> Table:
    sizes = found.sizes
    statistics = ", and class statistics" if found.class_memory else ""
    if not found.divides_network:
        kept = ["and samples of earlier tasks"] if found.samples_kept else []
        what = ", ".join(["all that the method keeps", *kept])
        rows = [["file", format_bytes(sizes.file)], ["to predict", format_bytes(sizes.packed)]]
        return Table("Sizes", [], [*rows, ["to learn more", f"{format_bytes(sizes.ledger)} ({what})"]], "ll")
    weights = f", {found.weights:,} weights" if found.weights != found.connections else ""
    rows = [
        ["file", f"{format_bytes(sizes.file)}, {sizes.per_connection:.1f} bytes per connection"],
        ["connections", f"{found.connections:,}{weights}"],
        ["to predict", f"{format_bytes(sizes.packed)} (the used part of the network{statistics})"],
        ["to learn more", f"{format_bytes(sizes.ledger)} (connections and their tasks{statistics})"],
        ["for comparison", f"{format_bytes(sizes.dense)} (all weights of the network if it were dense)"],
    ]
    return Table("Sizes", [], rows, "ll")


def _measured_table(found: "Inspection") -> Table:
    after, now = found.measured_after, len(found.tasks)
    rows = [[METRIC_NAMES[name].name, f"{value:z.2f}"] for name, value in found.measured.items()]
    if after is not None:
        rows.append(["when", f"after {plural(after, 'task')}" + (f"; now there are {now}" if after != now else "")])
    if found.measured_on:
        rows.append(["on", found.measured_on])
    return Table("Measured by the run that made the model", [], rows, "ll")


def _training_text(settings: Mapping[str, Any]) -> str:
    epochs, rate = settings.get("epochs"), settings.get("learning_rate")  # not there: they follow from the data
    parts = [plural(epochs, "epoch") if epochs else "epochs by the number of samples"]
    parts += [f"batches of {settings['batch_size']}", str(settings["optimizer"])]
    parts += [f"learning rate {rate:g}"] if rate else []
    parts += [f"{name.replace('_', ' ')} {settings[name]:g}" for name in ("momentum", "weight_decay") if settings[name]]
    return ", ".join(parts + ([str(settings["augment"])] if settings["augment"] != "none" else []))
