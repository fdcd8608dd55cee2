"""The tables of an evaluation: tasks, classes, old against new, calibration, confusion and mistakes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spacenet.report.table import Table
from spacenet.report.tables import labels_text, shorten_labels
from spacenet.utils.text import plural, printable

if TYPE_CHECKING:
    from spacenet.model.evaluation import Evaluation
    from spacenet.model.scores import Calibration, ClassScores, Mistakes, OldNew
    from spacenet.model.watching import WatchSummary

MANY_CLASSES = 30  # more are not listed in a terminal, only the worst ones
WORST = 15
MAX_CONFUSION = 12  # classes up to which a terminal shows the whole matrix
MAX_CONFUSIONS = 10
MAX_VALUES = 8  # of a sample in a table
MAX_ROWS = 10  # mistakes in a terminal


def evaluation_tables(found: "Evaluation") -> list[Table]:
    """Everything, for a terminal: of many classes the worst ones."""
    classes = classes_table(found.classes)
    if len(found.classes) > MANY_CLASSES:
        worst = sorted((each for each in found.classes if each.f1 is not None), key=lambda each: each.f1 or 0.0)
        classes = classes_table(worst[:WORST], f"The {WORST} worst of {len(found.classes)} classes, by F1")
    names = [each.label for each in found.classes]
    small = len(names) <= MAX_CONFUSION
    confusion = confusion_table(found.confusion, names) if small else confusions_table(found.confusion, names)
    old_new = [old_new_table(found.old_new)] if found.old_new else []
    mistakes = [mistakes_table(found.mistakes, MAX_ROWS)] if found.mistakes.each else []
    calibration = calibration_table(found.calibration)
    watch = [watch_table(found.watch)] if found.watch else []
    return [tasks_table(found), *old_new, classes, confusion, calibration, *watch, *mistakes, evaluation_table(found)]


def evaluation_table(found: "Evaluation") -> Table:
    """The summary."""
    calibration = found.calibration
    rows = [
        ["accuracy", f"{found.accuracy:.2f} %", f"of {plural(found.samples, 'sample')}"],
        ["mean confidence", f"{calibration.mean_confidence:.2f} %", "probability of the predicted class"],
        ["ECE", f"{calibration.ece:.2f}", "expected calibration error in points, 15 bins"],
    ]
    if found.old_new:
        sides = (
            ("old classes", found.old_new.old_accuracy, "accuracy on all tasks but the last"),
            ("new classes", found.old_new.new_accuracy, "accuracy on the last task"),
        )
        rows[1:1] = [[name, f"{percent(value, 2)} %", text] for name, value, text in sides if value is not None]
    rows += detection_rows(found)
    return Table("Evaluation", [], rows, "lrl", [text] if (text := unknown_text(found)) else [])


def detection_rows(found: "Evaluation") -> list[list[str]]:
    """How well samples of unknown classes are found; empty if they were not looked for."""
    if (detection := found.detection) is None:
        return []
    wanted = f"known classes called unknown; wanted {detection.rate:g} %"
    rows = [["false alarms", f"{percent(detection.false_alarms, 2)} %", wanted]]
    if detection.auroc is not None:
        rows.append(["unknown found", f"{percent(detection.found, 2)} %", "of samples with unknown labels"])
        rows.append(["AUROC", f"{detection.auroc:.4f}", "how well typicality ranks known before unknown"])
    return rows


def watch_table(found: "WatchSummary") -> Table:
    """How typical the samples predicted as each class are: of many classes, those that are the least usual."""
    each = (
        sorted(found.classes, key=lambda one: -(one.excess or 0.0))
        if len(found.classes) > MANY_CLASSES
        else found.classes
    )
    rows = [
        [
            printable(one.label),
            f"{one.samples:,}",
            percent(one.unknown),
            "" if one.typicality is None else f"{one.typicality:.2f}",
            percent(one.excess),
            "yes" if one.drifted else "",
        ]
        for one in each[:MANY_CLASSES]
    ]
    notes = [
        f"{plural(found.samples, 'prediction')}, {found.unknown:,} of them unknown ({percent(found.unknown_rate)} %). "
        f"Of known classes {found.wanted_rate:g} % are called so too, the mean typicality is about 0.5, and no more "
        "samples than usual are below any level. Drifted: clearly more are."
    ]
    columns = ["predicted class", "samples", "unknown %", "typicality", "too many below a level %", "drifted"]
    return Table("How typical the samples are", columns, rows, notes=notes)


def unknown_text(found: "Evaluation") -> str:
    """How many samples have labels that the model does not know; empty if none have."""
    if not found.unknown:
        return ""
    labels = labels_text([f"{label} ({count:,})" for label, count in found.unknown.items()])
    return f"{plural(sum(found.unknown.values()), 'sample')} with unknown labels left out: {labels}."


def tasks_table(found: "Evaluation") -> Table:
    """The accuracy on each task."""
    rows = [
        [
            str(task.number),
            shorten_labels([printable(label) for label in task.classes]),
            f"{task.samples:,}",
            percent(task.accuracy),
            percent(task.task_il_accuracy),
        ]
        for task in found.tasks
    ]
    notes = ["Task-IL: task-incremental, only the classes of the sample's own task compete."]
    columns = ["task", "classes", "samples", "accuracy %", "task-IL accuracy %"]
    return Table("Accuracy on each task", columns, rows, "ll", notes)


def old_new_table(found: "OldNew") -> Table:
    """Where the predictions for old and for new classes go."""
    sides = (
        ("old classes", found.old_samples, found.old_accuracy, found.within_old, found.old_as_new),
        ("new classes", found.new_samples, found.new_accuracy, found.new_as_old, found.within_new),
    )
    rows = [
        [name, f"{samples:,}", percent(accuracy), f"{as_old:,}", f"{as_new:,}"]
        for name, samples, accuracy, as_old, as_new in sides
    ]
    columns = ["true class", "samples", "accuracy %", "wrong, as old", "wrong, as new"]
    notes = [
        "New: the classes of the last task. Old: those of all tasks before. "
        "Wrong, as new: predicted as a wrong class, which is one of the last task."
    ]
    return Table("Old against new classes", columns, rows, notes=notes)


def classes_table(scores: "Sequence[ClassScores]", title: str = "Precision and recall of each class") -> Table:
    """One row for each class."""
    names = ("precision", "recall", "f1")
    rows = [
        [printable(each.label), str(each.task), *(percent(getattr(each, name)) for name in names), f"{each.samples:,}"]
        for each in scores
    ]
    return Table(title, ["class", "task", "precision %", "recall %", "F1 %", "samples"], rows)


def calibration_table(calibration: "Calibration") -> Table:
    """The accuracy in each range of confidence that has predictions."""
    width = 100 / len(calibration.bins)
    rows = [
        [
            f"{number * width:.0f} to {(number + 1) * width:.0f}",
            f"{each.samples:,}",
            f"{100 * each.confidence / each.samples:.1f}",
            f"{100 * each.right / each.samples:.1f}",
        ]
        for number, each in enumerate(calibration.bins)
        if each.samples
    ]
    columns = ["confidence in %", "predictions", "mean confidence %", "accuracy %"]
    notes = [f"Expected calibration error (ECE): {calibration.ece:.2f} points."]
    return Table("Calibration", columns, rows, notes=notes)


def confusion_table(counts: Any, names: Sequence[str]) -> Table:
    """How many samples of each class were predicted as each."""
    rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, counts.tolist(), strict=True)]
    return Table("Samples by true class (row) and predicted class (column)", ["class", *names], rows)


def confusions_table(counts: Any, names: Sequence[str]) -> Table:
    """The most frequent confusions."""
    flat = [
        (int(count), true, predicted)
        for true, row in enumerate(counts.tolist())
        for predicted, count in enumerate(row)
        if true != predicted and count
    ]
    rows = [
        [names[true], names[predicted], f"{count:,}", percent(100 * count / int(counts[true].sum()))]
        for count, true, predicted in sorted(flat, key=lambda each: -each[0])[:MAX_CONFUSIONS]
    ]
    columns = ["true class", "predicted as", "samples", "% of the true class"]
    return Table("The most frequent confusions", columns, rows, "ll")


def mistakes_table(mistakes: "Mistakes", most: int | None = None) -> Table:
    """The wrong predictions, the most confident first; with the values of samples that are not images."""
    inputs = mistakes.inputs
    values = inputs[:, :MAX_VALUES] if inputs is not None and inputs.ndim == 2 else None
    rows = [
        [
            each.where,
            printable(each.true),
            printable(each.predicted),
            f"{each.confidence:.1f}",
            *([f"{value:.4g}" for value in values[number]] if values is not None else ()),
        ]
        for number, each in enumerate(mistakes.each[:most])
    ]
    features = [f"x{number}" for number in range(1, values.shape[1] + 1)] if values is not None else []
    features = [printable(name) for name in mistakes.columns[: len(features)]] or features
    columns = ["sample", "true class", "predicted as", "confidence %", *features]
    return Table("The most confident mistakes", columns, rows, "lll")


def percent(value: float | None, digits: int = 1) -> str:
    """A percentage without its sign; empty if there is none."""
    return "" if value is None else f"{value:.{digits}f}"
