"""A callback for TensorBoard: scalars during a run, and its plots at the end."""

import io
from pathlib import Path
from typing import Any

from spacenet.experiments.callbacks import Callback, RunStart
from spacenet.experiments.metrics import Record, mean_so_far
from spacenet.experiments.run import load_run
from spacenet.report.plots.collect import run_plots
from spacenet.report.plots.plot import Plot
from spacenet.training.loop import Epoch
from spacenet.utils.extras import require_extra

FOLDER = "tensorboard"


class TensorBoardLogger(Callback):
    """Writes events into the run's folder. A resumed run continues the same curves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = require_extra("tensorboard", "tensorboard", "tensorboardX")
        require_extra("tensorboard", "report", "matplotlib")  # an error now, not when the run is over
        self.writer: Any = library.SummaryWriter(str(folder / FOLDER))

    def on_run_begin(self, start: RunStart) -> None:
        model = start.config.model
        self.writer.add_text("run", f"{model.method} on {start.stream.name}, seed {model.seed}", start.tasks_done)

    def on_epoch_end(self, epoch: Epoch) -> None:
        self.writer.add_scalar(f"loss/task {epoch.task + 1}", epoch.loss, epoch.epoch + 1)
        self.writer.add_scalar(f"training accuracy/task {epoch.task + 1}", epoch.accuracy, epoch.epoch + 1)
        self.writer.flush()

    def on_task_end(self, record: Record) -> None:
        learned = len(record.matrix)
        row = record.matrix[-1][:learned]
        for number, accuracy in enumerate(row, 1):
            if accuracy is not None:
                self.writer.add_scalar(f"accuracy/task {number}", accuracy, learned)
        if (mean := mean_so_far(row, learned)) is not None:
            self.writer.add_scalar("accuracy/mean over tasks so far", mean, learned)
        for layer in record.tasks[-1].layers:
            self.writer.add_scalar(f"units reserved/{layer.name}", layer.reserved, learned)
            self.writer.add_scalar(f"connections/{layer.name}", layer.connections, learned)
        self.writer.flush()

    def on_run_end(self, metrics: dict[str, Any]) -> None:
        if not metrics["tasks_learned"]:
            return
        for plot in run_plots(load_run(self.folder)):
            self.writer.add_image(plot.title, _pixels(plot), metrics["tasks_learned"], dataformats="HWC")

    def close(self) -> None:
        self.writer.close()


def _pixels(plot: Plot) -> Any:
    """The plot on white, (height, width, 3)."""
    matplotlib_image = require_extra("tensorboard", "report", "matplotlib.image")
    pixels = matplotlib_image.imread(io.BytesIO(plot.png()), format="png")
    return pixels[..., :3] * pixels[..., 3:] + (1 - pixels[..., 3:])
