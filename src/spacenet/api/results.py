"""What `run`, `compare` and `sweep` return: results that show themselves in a terminal and in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spacenet.config.run import RunConfig
from spacenet.data.preprocessing import Array
from spacenet.errors import RunError
from spacenet.experiments.comparison import (
    COMPARISON,
    SUMMARIZED,
    ComparisonData,
    Failure,
    comparison_json,
    summarize_seeds,
)
from spacenet.experiments.run import RunData
from spacenet.experiments.sweep import Trial
from spacenet.model.file import save_model
from spacenet.report.tables import Table, comparison_table, run_tables, seeds_table, sweep_table
from spacenet.utils.extras import require_extra
from spacenet.utils.files import make_folder, save_text
from spacenet.utils.text import MeanStd

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped, unused-ignore]


class Shown:
    """Results that consist of tables."""

    def tables(self) -> list[Table]:
        """The tables that `print` and a notebook show."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(table.to_text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "\n".join(table.to_html() for table in self.tables())

    def to_latex(self) -> str:
        """The main table as LaTeX, for the booktabs package."""
        return self.tables()[0].to_latex()

    def to_markdown(self) -> str:
        """The main table as Markdown."""
        return self.tables()[0].to_markdown()


def _figure(name: str) -> property:
    """A figure of metrics.json, as a property."""

    def get(result: "RunResult") -> float:
        if name not in result.metrics:
            raise RunError("no task was learned, so there is nothing measured")
        return float(result.metrics[name])

    return property(get)


def _summarized(name: str) -> property:
    """A figure over the seeds, as a property."""

    def get(results: "SeedResults") -> MeanStd:
        return results.summary[name]

    return property(get)


@dataclass(frozen=True, repr=False)
class RunResult(Shown, RunData):
    """The result of one run. Accuracies are percentages.

    Attributes
    ----------
    acc, last_acc, aia, bwt, forgetting, fwt, task_il_acc : float
        Mean accuracy over all tasks in the end; accuracy over all test samples in the end; average incremental
        accuracy (the mean, after each task, of that over all samples of the classes seen so far); backward transfer;
        forgetting; forward transfer; and the task-incremental accuracy, where only the classes of the sample's own
        task compete.
    matrix : array (tasks, tasks)
        Accuracy on each task (column) after learning each task (row); NaN where `evaluate_every` left it out.
    metrics : dict
        Everything that was measured, as metrics.json holds it.
    model : Model or None
        What was learned, ready to predict; None if no task was learned, or for a run of an earlier version.
    config : RunConfig
        All settings; `method`, `stream` and `seed` are among them.
    """

    acc, last_acc, aia, bwt = _figure("acc"), _figure("last_acc"), _figure("aia"), _figure("bwt")
    forgetting, fwt, task_il_acc = _figure("forgetting"), _figure("fwt"), _figure("task_il_acc")

    @classmethod
    def of(cls, data: RunData) -> "RunResult":
        return cls(**vars(data))

    @property
    def matrix(self) -> Array:
        return np.array(self.metrics.get("matrix", []), dtype=float)

    def tables(self) -> list[Table]:
        return run_tables(self)

    def save(self, path: str | Path) -> Path:
        """Write the model to a file; `spacenet.load` reads it, and it can learn on."""
        if self.model is None:
            raise RunError("the run left no model to use; repeat it")
        save_model(Path(path), self.model)
        return Path(path)

    def to_frame(self) -> "DataFrame":
        """The accuracy matrix as a pandas data frame: rows are tasks learned, columns are tasks tested."""
        pandas = require_extra("to_frame", "pandas", "pandas")
        names = [", ".join(labels) for labels in self.labels]
        index = pandas.RangeIndex(1, len(names) + 1, name="after task")
        frame: DataFrame = pandas.DataFrame(self.matrix[: len(names), : len(names)], index=index, columns=names)
        return frame

    def report(self, path: str | Path, *, beside: "RunResult | None" = None) -> Path:
        """Write an HTML page with everything that can be shown of the run; it needs no other files."""
        from spacenet.report.page.build import run_page, save_page

        save_page(run_page([self], beside), Path(path))
        return Path(path)


@dataclass(frozen=True, repr=False)
class SeedResults(Shown, Sequence[RunResult]):
    """The results of one run with several seeds: a sequence of `RunResult`, with mean and standard deviation.

    Attributes
    ----------
    acc, last_acc, aia, bwt, forgetting, task_il_acc : MeanStd
        Mean and standard deviation over the seeds; None for the standard deviation of a single one.
    failures : tuple
        Seeds that did not finish, each with its error.
    """

    runs: Sequence[RunResult]
    failures: Sequence[Failure] = ()

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: Any) -> Any:
        return self.runs[index]

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.runs)

    @cached_property
    def summary(self) -> dict[str, MeanStd]:
        return summarize_seeds(self.runs)

    acc, last_acc, aia, bwt = _summarized("acc"), _summarized("last_acc"), _summarized("aia"), _summarized("bwt")
    forgetting, task_il_acc = _summarized("forgetting"), _summarized("task_il_acc")

    def tables(self) -> list[Table]:
        return [seeds_table(self.runs)]

    def to_frame(self) -> "DataFrame":
        """One row per seed as a pandas data frame."""
        pandas = require_extra("to_frame", "pandas", "pandas")
        rows = {run.seed: {name: run.metrics[name] for name in SUMMARIZED} for run in self.runs}
        frame: DataFrame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("seed")
        return frame

    def report(self, path: str | Path) -> Path:
        """Write an HTML page: figures of all seeds, plots of the first."""
        from spacenet.report.page.build import run_page, save_page

        page = run_page(self.runs, failures=self.failures)
        save_page(page, Path(path))
        return Path(path)


@dataclass(frozen=True, repr=False)
class Comparison(Shown, ComparisonData):
    """Several methods on one stream: one row per method.

    Attributes
    ----------
    rows : sequence of Row
        ACC, last accuracy, AIA, BWT, forgetting and task-incremental ACC with their standard deviation over the seeds
        (None for a single one), what each method keeps, and its time.
    runs : dict
        The runs of each method.
    failures : sequence of Failure
        Runs that did not learn the whole stream, each with its reason.
    """

    runs: Mapping[str, Sequence[RunResult]]

    @classmethod
    def of(cls, data: ComparisonData) -> "Comparison":
        runs = {name: [RunResult.of(run) for run in runs] for name, runs in data.runs.items()}
        return cls(**{**vars(data), "runs": runs})

    def tables(self) -> list[Table]:
        return [comparison_table(self)]

    def to_csv(self) -> str:
        """Plain numbers as CSV, one line per method."""
        columns = self.columns()
        rows = [["" if v is None else str(v) for v in row] for row in zip(*columns.values(), strict=True)]
        return Table(self.stream, list(columns), rows).to_csv()

    def save(self, folder: str | Path) -> None:
        """Write the table into a folder as comparison.json, comparison.md, comparison.csv and comparison.tex."""
        place = Path(folder)
        make_folder(place)
        save_text(place / COMPARISON, self.to_json())
        save_text(place / "comparison.md", self.to_markdown())
        save_text(place / "comparison.csv", self.to_csv())
        save_text(place / "comparison.tex", self.to_latex())

    def to_json(self) -> str:
        """Rows and failures as JSON."""
        return comparison_json(self)

    def to_frame(self) -> "DataFrame":
        """One row per method as a pandas data frame, with plain numbers."""
        pandas = require_extra("to_frame", "pandas", "pandas")
        frame: DataFrame = pandas.DataFrame(self.columns()).set_index("method")
        return frame

    def columns(self) -> dict[str, list[Any]]:
        """Plain numbers by column; figures over seeds have a column for their standard deviation."""
        found: dict[str, list[Any]] = {}
        for row in self.rows:
            for name, value in vars(row).items():
                if isinstance(value, MeanStd):
                    found.setdefault(name, []).append(value.mean)
                    found.setdefault(f"{name}_std", []).append(value.std)
                else:
                    found.setdefault(name, []).append(value)
        return found

    def report(self, path: str | Path) -> Path:
        """Write an HTML page that puts the methods side by side."""
        from spacenet.report.page.build import comparison_page, save_page

        save_page(comparison_page(self), Path(path))
        return Path(path)


@dataclass(frozen=True, repr=False)
class SweepResult(Shown):
    """The outcome of a search for settings, the best trial first.

    Attributes
    ----------
    best : RunConfig
        The best settings, to be evaluated on the test set: ``spacenet.run(stream, config=result.best)``.
    trials : sequence of Trial
        What was tried, with its score: mean ACC on held-out training data.
    """

    best: RunConfig
    trials: Sequence[Trial]

    def tables(self) -> list[Table]:
        return [sweep_table(self.trials)]

    def to_frame(self) -> "DataFrame":
        """One row per trial as a pandas data frame."""
        pandas = require_extra("to_frame", "pandas", "pandas")
        rows = {trial.number: {"acc": trial.score, **trial.values} for trial in self.trials}
        frame: DataFrame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("trial")
        return frame
