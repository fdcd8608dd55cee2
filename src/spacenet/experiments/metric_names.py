"""What a run measures, in words: the one place that says what each metric is called and what it means.

`spacenet.experiments.metrics` computes them. Importing this module imports no heavy library.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricName:
    """The names of one metric, and its meaning."""

    heading: str
    """In tables; a heading that ends with % says that the values are percentages, the others are percentage points."""
    meaning: str
    signed: bool = False
    """Whether positive values are shown with a sign."""

    @property
    def name(self) -> str:
        """Without the unit."""
        return self.heading.removesuffix(" %")

    def format(self, value: float) -> str:
        """A value with its unit."""
        text = f"{value:+z.2f}" if self.signed else f"{value:z.2f}"
        return f"{text} %" if self.heading.endswith("%") else text


METRIC_NAMES: dict[str, MetricName] = {
    "acc": MetricName("ACC %", "mean accuracy over all tasks after the last one"),
    "last_acc": MetricName("last accuracy %", "accuracy over all test samples after the last task"),
    "aia": MetricName(
        "AIA %",
        "average incremental accuracy, the mean after each task of that over all classes seen so far",
    ),
    "bwt": MetricName("BWT", "mean change of earlier tasks since they were learned", signed=True),
    "forgetting": MetricName("forgetting", "mean drop of earlier tasks from their best accuracy"),
    "fwt": MetricName("forward transfer", "accuracy on tasks before they are learned", signed=True),
    "task_il_acc": MetricName(
        "task-IL ACC %", "task-incremental accuracy, where only the classes of a sample's own task compete"
    ),
    "ece": MetricName("ECE", "expected calibration error of the probabilities in the end, in 15 bins"),
}
"""By their names in metrics.json, in `RunResult` and in the rows of a comparison."""


def explain_metrics(*keys: str) -> str:
    """Sentences that say what metrics mean: "ACC: mean accuracy …. BWT: …"."""
    names = [METRIC_NAMES[key] for key in keys]
    return " ".join(f"{each.name[:1].upper()}{each.name[1:]}: {each.meaning}." for each in names)
