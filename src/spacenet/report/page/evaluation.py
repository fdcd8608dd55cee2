"""The page of an evaluation: a model on labeled data."""

from spacenet import __version__
from spacenet.model.evaluation import Evaluation
from spacenet.report import evaluation_tables as tables
from spacenet.report.evaluation_tables import percent
from spacenet.report.page.build import mistakes_section
from spacenet.report.page.page import Metric, Page, Section
from spacenet.report.plots.calibration import calibration_plot
from spacenet.report.plots.class_scores import class_scores_plot
from spacenet.report.plots.confusion import class_confusion_plot, task_confusion_plot
from spacenet.report.plots.mistakes import mistakes_plot
from spacenet.utils.text import plural


def evaluation_page(found: Evaluation, model: str, data: str) -> Page:
    """The page of a model on data; both are given by their names."""
    labels, unknown = found.labels, tables.unknown_text(found)
    old_new = [tables.old_new_table(found.old_new)] if found.old_new else []
    whole = len(labels) == len(found.tasks)  # else a task brought no new class, and numbers of tasks would be wrong
    confusions = [task_confusion_plot(found.confusion, labels) if whole else None]
    confusions.append(class_confusion_plot(found.confusion, labels))
    mistakes = mistakes_plot(found.mistakes)
    sections = [
        Section("Tasks", [tables.tasks_table(found), *old_new]),
        Section("Precision and recall", plots=[plot for plot in [class_scores_plot(found.classes)] if plot]),
        Section("Confusion", plots=[plot for plot in confusions if plot]),
        Section("Calibration", plots=[plot for plot in [calibration_plot(found.calibration)] if plot]),
        *([Section("Unknown samples", [tables.watch_table(found.watch)])] if found.watch else []),
        mistakes_section(found.mistakes, [mistakes] if mistakes else []),
    ]
    classes = f"{plural(len(found.classes), 'class', 'es')} in {plural(len(found.tasks), 'task')}"
    lead = f"The model has learned {classes}. It was evaluated on {plural(found.samples, 'sample')}."
    footer = f"Made by spacenet {__version__}."
    return Page(f"{model} on {data}", lead, sections, [unknown] if unknown else [], evaluation_metrics(found), footer)


def evaluation_metrics(found: Evaluation) -> list[Metric]:
    """The numbers at the top."""
    calibration = found.calibration
    metrics = [Metric("Accuracy", f"{found.accuracy:.1f} %", f"of {plural(found.samples, 'sample')}")]
    if found.old_new:
        sides = (
            ("Old classes", found.old_new.old_accuracy, "accuracy on all tasks but the last"),
            ("New classes", found.old_new.new_accuracy, "accuracy on the last task"),
        )
        metrics += [Metric(name, f"{percent(value)} %", text) for name, value, text in sides if value is not None]
    confidence = f"{calibration.mean_confidence:.1f} %"
    metrics.append(Metric("Mean confidence", confidence, "probability of the predicted class"))
    metrics.append(Metric("ECE", f"{calibration.ece:.1f}", "expected calibration error in percentage points, 15 bins"))
    return metrics
