"""`evaluate`: a model on labeled data, and the result, which shows itself."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacenet.api.results import Shown
from spacenet.config.stream import DataConfig
from spacenet.data.sources import data_settings, read_for_evaluation
from spacenet.data.user_data import arrays_from_memory, frame_inputs
from spacenet.errors import DataError
from spacenet.model.evaluation import Evaluation, evaluate_model
from spacenet.model.file import load_model
from spacenet.model.model import Model
from spacenet.report.evaluation_tables import evaluation_tables
from spacenet.report.tables import Table
from spacenet.utils.extras import require_extra

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped, unused-ignore]

    from spacenet.model.estimator import SpaceNetClassifier


@dataclass(frozen=True, repr=False, eq=False)
class EvaluationResult(Shown, Evaluation):
    """A model on labeled data. Accuracies are percentages, over the samples whose label the model knows.

    Attributes
    ----------
    accuracy : float
        Over all samples.
    tasks, classes : tuple
        Accuracy on each task; precision, recall and F1 of each class.
    old_new : OldNew or None
        The classes of the last task against those before, and where the errors go.
    calibration : Calibration
        `ece`, `mean_confidence`, and the bins of the reliability diagram.
    confusion : array (classes, classes)
        Samples by true (row) and predicted class (column).
    mistakes : Mistakes
        The wrong predictions with the highest confidence.
    unknown : dict
        Labels that the model does not know, and how many samples have each.
    detection : Detection or None
        With `unknown`, false alarms among known classes, and how many samples of unknown ones are found.
    """

    model: str = "model"
    """The name of the model on the page."""
    data: str = "data"

    def tables(self) -> list[Table]:
        return evaluation_tables(self)

    def to_frame(self) -> "DataFrame":
        """One row per class as a pandas data frame."""
        pandas = require_extra("to_frame", "pandas", "pandas")
        frame: DataFrame = pandas.DataFrame([asdict(each) for each in self.classes]).set_index("label")
        return frame

    def report(self, path: str | Path) -> Path:
        """Write an HTML page with tables and plots; it needs no other files."""
        from spacenet.report.page.build import save_page
        from spacenet.report.page.evaluation import evaluation_page

        save_page(evaluation_page(self, self.model, self.data), Path(path))
        return Path(path)


def evaluate(
    model: "Model | SpaceNetClassifier | str | Path",
    data: Any,
    *,
    label: Any = None,
    drop: Any = None,
    header: bool | None = None,
    resize: bool = False,
    unknown: float | None = None,
    progress: bool = False,
) -> EvaluationResult:
    """Measure a model on labeled data: each task and class, old against new classes, confusion, calibration.

    Parameters
    ----------
    model : path, SpaceNetClassifier or Model
        A model file, a fitted classifier, or the model of a run.
    data : path, sequence of paths, data frame, arrays (x, y), or data set
        Files (.npz, .npy, .csv, .parquet), folders with one sub-folder per class, or what is in memory. Of a file that
        has a test part, this part is used. Samples with labels that the model does not know are counted and left out.
    label : str or int, optional
        The column of a table that has the labels, by name or number; for an .npy file, a second one with the labels.
    drop : str, int or list of these, optional
        Columns of a table to leave out.
    header : bool, optional
        Whether the first line of a CSV file names its columns; by default found from the first two lines.
    resize : bool, default False
        Resize images in folders to the model's size.
    unknown : float, optional
        Measure how well samples of unknown classes are found, at the threshold where this fraction of the samples of
        known classes is called unknown too. Those with labels that the model does not know should be.
    progress : bool, default False
        Show how far reading is.

    Returns
    -------
    EvaluationResult

    Examples
    --------
    >>> import spacenet
    >>> from sklearn.datasets import load_digits
    >>> x, y = load_digits(return_X_y=True)
    >>> classifier = spacenet.SpaceNetClassifier(expected_tasks=2, epochs=5)
    >>> classifier = classifier.partial_fit(x[y < 5], y[y < 5]).partial_fit(x[y >= 5], y[y >= 5])
    >>> result = spacenet.evaluate(classifier, (x, y))
    >>> result.samples, len(result.tasks), result.old_new.new_samples
    (1797, 2, 896)
    """
    found = _find_model(model)
    target = found.target(resize)
    config, paths = DataConfig(**data_settings({"label": label, "drop": drop, "header": header})), _paths(data)
    if paths:
        x, y, columns = read_for_evaluation(paths, config, target, progress)
    else:
        (x, y), columns = arrays_from_memory("data", data, config), frame_inputs(data, config)
    name = Path(model).name if isinstance(model, str | Path) else "model"
    names = ", ".join(path.name for path in paths)
    return EvaluationResult(**vars(evaluate_model(found, x, y, columns, unknown)), model=name, data=names or "data")


def _find_model(model: Any) -> Model:
    if isinstance(model, str | Path):
        return load_model(Path(model))
    found = getattr(model, "model_", model)  # a classifier's own
    if not isinstance(found, Model):
        raise DataError(f"{type(model).__name__} is no model; give a model file, a fitted classifier or a run's model")
    return found


def _paths(data: Any) -> Sequence[Path]:
    """The files and folders that data names; none if it is in memory."""
    several = data if isinstance(data, list | tuple) else [data]
    return (
        [Path(each).expanduser() for each in several] if all(isinstance(each, str | Path) for each in several) else []
    )
