"""`spacenet run --tensorboard`: scalars while a run goes on, its pictures in the end, for those who live there."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.record import Record
from spacenet.report.plots.accuracy import accuracy_pictures
from spacenet.report.plots.plot import Plot
from spacenet.report.plots.space import space_pictures
from spacenet.report.run_data import load_run
from spacenet.training.loop import Epoch
from spacenet.utils.extras import require_extra

FOLDER = "tensorboard"


class TensorBoardLogger(Callback):
    """Writes events into the run's folder. A run that goes on after an interruption goes on in the same curves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = require_extra("tensorboard", "tensorboard", "tensorboardX")
        require_extra("tensorboard", "report", "matplotlib")  # said now, not when the run is over
        self.writer: Any = library.SummaryWriter(str(folder / FOLDER))

    def begin(self, config: RunConfig, stream: Stream, tasks_done: int, warnings: Sequence[str]) -> None:
        self.writer.add_text("run", f"{config.method} on {config.stream}, seed {config.seed}", tasks_done)

    def epoch(self, epoch: Epoch) -> None:
        self.writer.add_scalar(f"loss/task {epoch.task + 1}", epoch.loss, epoch.epoch + 1)
        self.writer.add_scalar(f"training accuracy/task {epoch.task + 1}", epoch.accuracy, epoch.epoch + 1)
        self.writer.flush()

    def task(self, record: Record) -> None:
        learned = len(record.matrix)
        row = record.matrix[-1][:learned]
        for number, accuracy in enumerate(row, 1):
            self.writer.add_scalar(f"accuracy/task {number}", accuracy, learned)
        self.writer.add_scalar("accuracy/mean over tasks so far", sum(row) / learned, learned)
        for layer in record.tasks[-1].layers:
            self.writer.add_scalar(f"units reserved/{layer.name}", layer.reserved, learned)
            self.writer.add_scalar(f"connections/{layer.name}", layer.connections, learned)
        self.writer.flush()

    def end(self, metrics: dict[str, Any]) -> None:
        if not metrics["tasks_learned"]:
            return
        facts = load_run(self.folder)
        for plot in (*accuracy_pictures(facts), *space_pictures(facts)):
            self.writer.add_image(plot.title, _pixels(plot), metrics["tasks_learned"], dataformats="HWC")

    def close(self) -> None:
        self.writer.close()


def _pixels(plot: Plot) -> Any:
    """The picture on white, (height, width, 3)."""
    matplotlib_image = require_extra("tensorboard", "report", "matplotlib.image")
    pixels = matplotlib_image.imread(io.BytesIO(plot.png()), format="png")
    return pixels[..., :3] * pixels[..., 3:] + (1 - pixels[..., 3:])
