"""A model card: what a model is, what it was measured on, what it is for and what not, as Markdown.

Everything in it follows from the model file. Mitchell et al.: Model Cards for Model Reporting. FAT*, 2019.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spacenet.experiments.metric_names import METRIC_NAMES
from spacenet.report.table import Table
from spacenet.report.tables import capacity_text, chosen_settings_text, class_memory_text, labels_text
from spacenet.utils.text import format_bytes, plural, printable

if TYPE_CHECKING:
    from spacenet.model.inspection import Inspection

UNMEASURED = (
    "The file has no measurements: it was not made by a run on a stream with test data. "
    "`spacenet evaluate MODEL DATA` measures it."
)
APART = (
    "Classes of different tasks were never seen together in training, so it confuses them more often than classes of "
    "the same task, the more so the more tasks there are."
)
TO_ADD = (
    "It was trained on samples that the file does not hold{}. Where they come from, whom they show and under which "
    "terms they may be used has to be added here by who trained it, and so has what the model must not be used for."
)
CALIBRATION = (
    "`spacenet evaluate MODEL DATA` prints the expected calibration error and the bins of a reliability diagram."
)
UNCALIBRATED = "The file does not hold how well probabilities are calibrated."


def model_card(found: "Inspection", name: str) -> str:
    """The card of a model with this name."""
    sections = {
        "Model": _list(_model_facts(found)),
        "Data and tasks": _tasks(found),
        "Accuracy": _accuracy(found),
        "Calibration": _calibration(found),
        "Memory and space": _list(_memory_facts(found)),
        "Intended use": _use(found),
        "Limits": _limits(found),
        "Versions": _list([(library, version) for library, version in found.versions.items()]),
    }
    parts = [f"# {printable(name)}", *(f"## {title}\n\n{text}" for title, text in sections.items())]
    return "\n\n".join(parts) + "\n"


def _list(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {what}: {text}" for what, text in facts)


def _model_facts(found: "Inspection") -> list[tuple[str, str]]:
    facts = [
        ("Method", f"{found.method} (spacenet), seed {found.seed}"),
        ("Network", f"{found.net}, hidden layers of {', '.join(map(str, found.hidden))}" if found.hidden else "none"),
        ("Input", f"numbers of the shape {'×'.join(map(str, found.input_shape))}"),
        ("Output", f"a probability for each of {plural(len(found.classes), 'class', 'es')}"),
    ]
    if found.encoder is not None:
        facts += [("Encoder", found.encoder), ("License of the encoder", found.encoder_license or "not known")]
    return facts


def _tasks(found: "Inspection") -> str:
    on = f"Learned from the stream {found.measured_on.split(',')[0]}. " if found.measured_on else ""
    lead = f"{on}{plural(len(found.tasks), 'task')}, one after the other, without samples of earlier ones.\n\n"
    if found.keeps_samples:
        lead = lead.replace(
            ", without samples of earlier ones", "; the method keeps samples of earlier ones in training"
        )
    rows = [[str(task.number), labels_text(task.classes)] for task in found.tasks]
    columns = ["task", "classes"]
    if found.task_accuracies:
        columns.append("accuracy %")
        rows = [[*row, f"{value:.2f}"] for row, value in zip(rows, found.task_accuracies, strict=True)]
    return lead + Table("", columns, rows, "llr"[: len(columns)]).to_markdown().strip()


def _accuracy(found: "Inspection") -> str:
    if not found.measured:
        return UNMEASURED
    lines = [
        f"- {METRIC_NAMES[name].name}: {value:z.2f} ({METRIC_NAMES[name].meaning})"
        for name, value in found.measured.items()
    ]
    after, now = found.measured_after, len(found.tasks)
    if found.measured_on:
        lines.append(f"- Measured on {found.measured_on}")
    if after is not None and after != now:
        lines.append(f"- Measured after {plural(after, 'task')}; now there are {now}, so these figures are out of date")
    return "\n".join(lines)


def _calibration(found: "Inspection") -> str:
    error = found.measured.get("ece")
    if error is None:
        return f"{UNCALIBRATED} {CALIBRATION}"
    return f"Expected calibration error: {error:.2f} percentage points, in 15 bins, on the same samples. {CALIBRATION}"


def _memory_facts(found: "Inspection") -> list[tuple[str, str]]:
    sizes = found.sizes
    facts = [("File", format_bytes(sizes.file)), ("To predict", format_bytes(sizes.packed))]
    facts += [("To learn more", format_bytes(sizes.ledger)), ("Space", _space_text(found))]
    if found.samples_kept:
        facts.append(("Samples of earlier tasks in the file", f"{found.samples_kept:,}"))
    if found.class_memory is not None:
        facts.append(("Kept of each class", class_memory_text(found.class_memory)))
    if found.chosen_settings:
        facts.append(("Chosen settings", chosen_settings_text(found.chosen_settings)))
    return facts


def _space_text(found: "Inspection") -> str:
    return capacity_text(found.tasks_left, needs_old_data=found.needs_old_data)


def _use(found: "Inspection") -> str:
    learn = "It can be taught more classes without the old samples."
    if found.needs_old_data or found.tasks_left == 0:
        learn = ""
    elif found.samples_kept:
        learn = f"It can be taught more classes with the {found.samples_kept:,} old samples that it holds."
    kind = "features of an encoder" if found.encoder is not None else "inputs"
    return f"Classification of {kind} like those that it was trained on into the classes above. {learn}".strip()


def _limits(found: "Inspection") -> str:
    unknown = "It cannot tell that an input is like none of them."
    if found.tells_unknown:
        unknown = "With a threshold (`--unknown 0.05`) it can say that an input is like none of them."
    limits = [f"It answers with one of the classes above, whatever it is given. {unknown}"]
    limits += [APART] if len(found.tasks) > 1 and not found.keeps_samples else []
    but = f", but for {found.samples_kept:,} of them" if found.samples_kept else ""
    return "\n".join(f"- {each}" for each in [*limits, TO_ADD.format(but)])
