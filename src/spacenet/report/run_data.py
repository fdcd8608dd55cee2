"""What a report is made from: everything that run folders hold, read once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacenet.config.run import RunConfig
from spacenet.errors import ModelFileError, RunError
from spacenet.experiments.analysis import Analysis, load_analysis
from spacenet.experiments.run import MODEL, load_config, load_metrics
from spacenet.model.file import load_model
from spacenet.model.model import Model


@dataclass(frozen=True)
class RunFacts:
    """A run that ended."""

    folder: Path
    config: RunConfig
    metrics: dict[str, Any]
    """The content of metrics.json."""
    analysis: Analysis
    model: Model | None
    """None where the method has no space."""

    @property
    def labels(self) -> list[list[str]]:
        """The classes of each task."""
        return [list(task["labels"]) for task in self.metrics["tasks"]]


def load_run(folder: Path) -> RunFacts:
    """The run in a folder."""
    config, metrics = load_config(folder), load_metrics(folder)
    if metrics is None:
        raise RunError(f"{folder}: the run is not finished; go on with: spacenet run --resume {folder}")
    if not metrics["tasks_learned"]:
        raise RunError(f"{folder}: no task was learned, there is nothing to report")
    try:
        model = load_model(folder / MODEL)
    except ModelFileError:
        model = None
    return RunFacts(folder, config, metrics, load_analysis(folder), model)
