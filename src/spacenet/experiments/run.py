"""One run: learn a stream with a method, measure, save after every epoch, resume where it stopped.

A run needs no folder. With one it leaves config.toml, run.log, analysis.safetensors, and in the end metrics.json and
model.safetensors; until then state.safetensors, from which it can be resumed.
"""

import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spacenet.config.model import ModelConfig
from spacenet.config.presets import resolve_automatic
from spacenet.config.run import RunConfig, read_toml
from spacenet.data.augmentation import check_images
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.errors import ModelFileError, RunError, SpaceFull, UnreadableModelError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.callbacks import Callback, FileLogger, RunStart
from spacenet.experiments.metrics import (
    Record,
    Row,
    TaskRecord,
    accuracies,
    accuracies_so_far,
    average_incremental_accuracy,
)
from spacenet.methods import get_method
from spacenet.methods.base import Method
from spacenet.model.file import from_bytes, load_model, save_model, to_bytes
from spacenet.model.model import Model
from spacenet.nets import build_net, resolve_net
from spacenet.training.hardware import Hardware, find_hardware
from spacenet.training.loop import Epoch, Position, learn_task, warn_of_chance
from spacenet.utils.files import make_folder, report_os_errors, save_text
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.tensors import in_section, load_tensors, save_tensors, section

log = logging.getLogger("spacenet")
CONFIG, METRICS, MODEL, STATE, LOG = "config.toml", "metrics.json", "model.safetensors", "state.safetensors", "run.log"
MEASURED = (
    *("stream", "evaluated_on", "tasks_learned", "matrix"),
    *("acc", "task_il_acc", "bwt", "forgetting", "fwt", "ece"),
)
"""Metrics that the model file holds too: what follows from the seed alone, so that equal runs make equal files."""
MAX_MATRIX = 256
"""With more tasks, the model file does without the accuracy matrix: its header, which is read first, has a limit."""


@dataclass(frozen=True)
class RunData:
    """Everything that a run leaves."""

    config: RunConfig
    metrics: dict[str, Any]
    """The content of metrics.json."""
    analysis: Analysis
    model: Model | None = None
    """None if no task was learned, or if the file of a finished run cannot be used."""
    folder: Path | None = None

    @property
    def method(self) -> str:
        return self.config.model.method

    @property
    def stream(self) -> str:
        return self.config.stream.name

    @property
    def seed(self) -> int:
        return self.config.model.seed

    @property
    def labels(self) -> list[list[str]]:
        """The classes of each task learned."""
        return [list(task["labels"]) for task in self.metrics.get("tasks", [])]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "model": to_bytes(self.model) if self.model else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = None
        if state["model"]:
            with warn_of_model(state["config"].model.method):
                model = from_bytes(state["model"])
        self.__dict__.update({**state, "model": model})


@contextmanager
def warn_of_model(method: str) -> Iterator[None]:
    """Go on without a model where a file cannot hold one: a method of another package may keep what it does not say."""
    try:
        yield
    except UnreadableModelError:
        raise
    except ModelFileError as error:
        log.warning("spacenet: warning: the run leaves no model (%s; see Method.check_state of %s)", error, method)


def load_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder} holds no run (there is no {CONFIG} in it)")
    return RunConfig.from_plain(read_toml(folder / CONFIG))


def load_metrics(folder: Path) -> dict[str, Any] | None:
    """The metrics of a finished run; None if it is not finished."""
    path = folder / METRICS
    with report_os_errors(path, "read"):
        metrics = dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
    if metrics and "matrix" in metrics:  # runs of earlier versions lack them
        matrix, samples = metrics["matrix"], count_test_samples(metrics)
        metrics.setdefault("aia", average_incremental_accuracy(matrix, samples))
        metrics.setdefault("last_acc", accuracies_so_far(matrix, samples)[-1])
    return metrics


def count_test_samples(metrics: dict[str, Any]) -> list[int]:
    """The number of test samples of each task learned; empty for runs of earlier versions, which did not note it."""
    counts = [task.get("test_samples") for task in metrics.get("tasks", ())]
    return [] if None in counts else counts


def remove_state(folder: Path) -> None:
    """Remove what a run needed to be resumed. The run is finished: it does not fail because of a file too many."""
    with suppress(OSError):
        (folder / STATE).unlink(missing_ok=True)


def load_run(folder: Path) -> RunData:
    """The finished run in a folder."""
    config, metrics = load_config(folder), load_metrics(folder)
    if metrics is None:
        raise RunError(
            f"{folder}: the run is not finished.",
            cli=f"Continue it with: spacenet run --resume {folder}",
            python=f"Continue it with spacenet.run(…, out={str(folder)!r}).",
        )
    return RunData(config, metrics, Analysis.load(folder), _load_model(folder / MODEL), folder)


def _load_model(path: Path) -> Model | None:
    """The model of a run, if it has one: runs of earlier versions left none with most methods, and the file may have
    been removed."""
    if not path.is_file():
        return None
    try:
        return load_model(path)
    except UnreadableModelError:  # it is there: a report without it would be wrong
        raise
    except ModelFileError:
        return None


class Run:
    """A run, from its beginning or from where it stopped. Making one checks everything; nothing is written before."""

    def __init__(
        self,
        config: RunConfig,
        stream: Stream | None = None,
        folder: Path | None = None,
        callbacks: Sequence[Callback] = (),
        hardware: Hardware | None = None,
    ) -> None:
        """
        stream     the user's own data; without it the stream is built from the configuration
        folder     where results are kept; a run that was interrupted there is resumed
        hardware   given where several processes share the run; only the first one writes and calls callbacks
        """
        torch.set_num_threads(config.model.training.threads)
        self.hardware = hardware or find_hardware(config.model.training)
        self.config, self.folder = config, folder if self.hardware.leads else None
        preprocessing = config.model.preprocessing
        built = stream or build_stream(config.stream, encoder=preprocessing.encoder)
        self.stream = built.with_preprocessing(preprocessing)
        model = resolve_automatic(config.model, self.stream.input_shape)
        net = resolve_net(model.net, self.stream.input_shape)
        model = dataclasses.replace(model, net=net, method_settings=model.method_settings.for_tasks(len(self.stream)))
        self.config = config = dataclasses.replace(config, model=model)
        self.method = build_method(config.model, self.stream.input_shape, self.hardware.device)
        self.record = Record(warnings=self.method.check(self.stream))
        self.analysis = Analysis()
        self.callbacks = list(callbacks) if self.hardware.leads else []
        self.start: Position | None = None
        self.output: Tensor | None = None
        """The scores for all test samples of the tasks learned, since they were last evaluated."""
        self.tests, self.classes = [task.test for task in self.stream], [task.classes for task in self.stream]
        self.test_x = torch.cat([test.x for test in self.tests]).to(self.hardware.device)
        if folder is not None and (folder / STATE).is_file():
            self._restore(folder)
        else:
            self.record.untrained = [0.0] * len(self.stream)  # there are no outputs yet

    def execute(self) -> RunData:
        """Learn what is still to be learned."""
        if self.folder is not None:
            make_folder(self.folder)
            if not (self.folder / CONFIG).exists():
                save_text(self.folder / CONFIG, self.config.to_toml())
            self.callbacks.append(FileLogger(self.folder / LOG))
        start = RunStart(self.config, self.stream, len(self.record.matrix), self.record.warnings)
        self._call(lambda callback: callback.on_run_begin(start))
        try:
            for index in range(len(self.record.matrix), len(self.stream)):
                self._learn(index)
            data = self._finish()
        except SpaceFull as full:
            # What was learned before stays usable: the model and its metrics are kept as for a finished run.
            stopped = f"task {len(self.record.matrix) + 1} was not learned: {full.message}"
            full.result = self._finish(stopped)
            raise
        finally:
            self._call(lambda callback: callback.close())
        return data

    def _learn(self, index: int) -> None:
        task, began = self.stream[index], time.perf_counter()
        if self.start is None:
            self.record.tasks.append(TaskRecord(index, [str(label) for label in task.labels], len(task.test)))
        current = self.record.tasks[-1]
        before = current.seconds

        def on_batch(done: int, total: int) -> None:
            for callback in self.callbacks:
                callback.on_batch_end(index, done, total)

        resumed = time.perf_counter()

        def on_epoch(epoch: Epoch, optimizer: Optimizer) -> None:
            nonlocal resumed
            current.training_seconds += time.perf_counter() - resumed
            current.seconds = before + time.perf_counter() - began
            current.epochs.append({"loss": epoch.loss, "accuracy": epoch.accuracy, **self.method.epoch_metrics()})
            self._call(lambda callback: callback.on_epoch_end(epoch))
            self._save(epoch.epoch + 1, optimizer)
            resumed = time.perf_counter()

        hooks: dict[str, Any] = {"on_batch": on_batch, "on_epoch": on_epoch}
        training = self.config.model.training
        learn_task(self.method, task, training, hardware=self.hardware, start=self.start, **hooks)
        current.training_seconds += time.perf_counter() - resumed
        self.start = None
        # From the record: a run that is resumed after a task's last epoch has not seen that epoch itself.
        last = current.epochs[-1:]
        if last and (warning := warn_of_chance(index, last[0]["accuracy"], task.train.y)):
            self.record.warnings.append(warning)
        class_il, task_il = self._evaluate(index + 1, everything=training.evaluates_after(index, len(self.stream)))
        self.record.matrix.append(class_il)
        self.record.task_il_matrix.append(task_il)
        current.accuracy = class_il[index] or 0.0
        current.measure(self.method)
        current.seconds = before + time.perf_counter() - began
        if index == 0 and self.hardware.leads:
            self.analysis.record_activations(self.method, task)
            if self.folder is not None:
                self.analysis.save(self.folder)
        self._save()
        self._call(lambda callback: callback.on_task_end(self.record))

    def _evaluate(self, learned: int, everything: bool = True) -> tuple[Row, Row]:
        """Accuracy on each task after `learned` tasks, or only on the last of these. Those to come score 0: their
        classes have no outputs yet."""
        to_come: Row = [0.0] * (len(self.stream) - learned)
        first = 0 if everything else learned - 1
        tests, left_out = self.tests[first:learned], [None] * first
        stop = sum(map(len, self.tests[:learned]))
        output = self.method.predict_all(self.test_x[stop - sum(map(len, tests)) : stop])
        self.output = output if everything else None
        class_il, task_il = accuracies(output, tests, self.classes[first:learned])
        return [*left_out, *class_il, *to_come], [*left_out, *task_il, *to_come]

    def _save(self, epochs_done: int = 0, optimizer: Optimizer | None = None) -> None:
        """Save the state; an optimizer is given in the middle of a task."""
        if self.folder is None:
            return
        memory = {str(task): rows for task, rows in self.method.memory.rows.items()}
        tensors = {**in_section("method", self.method.state()), **in_section("memory", memory)}
        if optimizer is not None:
            tensors |= in_section("optimizer", optimizer.state_tensors())
        measured, record = self.record.to_state()
        tensors |= in_section("record", measured)
        facts = {"epochs_done": epochs_done, "record": record, "data": self.stream.dataset.checksum}
        save_tensors(self.folder / STATE, tensors, facts)

    def _restore(self, folder: Path) -> None:
        tensors, facts = load_tensors(folder / STATE)
        self.record = Record.from_state(section(tensors, "record"), facts["record"])
        self.analysis = Analysis.load(folder)
        check_labels(folder, [task.labels for task in self.record.tasks], self.stream)
        if facts.get("data", "") != self.stream.dataset.checksum:
            raise RunError(
                f"{folder} holds a run on other data: {self.config.stream.data} has changed since it began; bring the "
                "old data back, or begin a new run in another folder"
            )
        self.method.load_state(section(tensors, "method"))
        self.method.memory.restore(self.stream, {int(k): rows for k, rows in section(tensors, "memory").items()})
        if facts["epochs_done"]:
            self.start = Position(facts["epochs_done"], section(tensors, "optimizer"))

    def _finish(self, stopped: str | None = None) -> RunData:
        learned = len(self.record.matrix)
        if learned and self.output is None:  # resumed after the last task, or stopped before it
            self.record.matrix[-1], self.record.task_il_matrix[-1] = self._evaluate(learned)
        metrics = self.record.metrics(self.config, self.hardware.describe(), stopped)
        if not self.hardware.leads:
            return RunData(self.config, metrics, self.analysis)
        if self.output is not None:
            tests, classes = self.tests[:learned], self.classes[:learned]
            metrics["ece"] = self.analysis.record_predictions(self.method.logits(self.output), self.stream, tests).ece
            self.analysis.record_truncation(self.method, tests, classes, self.stream.input_shape)
        model = self._model(metrics)
        if self.folder is not None:
            saved = None
            with warn_of_model(self.config.model.method):
                if model is not None:
                    save_model(self.folder / MODEL, model)
                saved = model
            model = saved
            self.analysis.save(self.folder)
            save_text(self.folder / METRICS, json.dumps(metrics, indent=1) + "\n")
            remove_state(self.folder)
        self._call(lambda callback: callback.on_run_end(metrics))
        return RunData(self.config, metrics, self.analysis, model, self.folder)

    def _model(self, metrics: dict[str, Any]) -> Model | None:
        """A model to use, if a task was learned."""
        tasks: list[tuple[Any, ...]] = [tuple(labels) for labels in self.stream.task_labels[: len(self.record.matrix)]]
        if not tasks:
            return None
        training = dataclasses.replace(self.config.model.training, device="auto", devices=1)
        config = dataclasses.replace(
            self.config.model, training=training, preprocessing=self.stream.resolved_preprocessing
        )
        measured = {name: value for name, value in metrics.items() if name in MEASURED}
        if len(tasks) > MAX_MATRIX:
            del measured["matrix"]
        return Model(config, self.stream.input_shape, self.stream.normalization, tasks, measured, self.method)

    def _call(self, event: Callable[[Callback], None]) -> None:
        for callback in self.callbacks:
            event(callback)


def build_method(config: ModelConfig, input_shape: tuple[int, ...], device: torch.device) -> Method:
    """The method that a configuration describes, for inputs of this shape; it has learned nothing."""
    if config.training.augment != "none":
        check_images(input_shape)
    blueprint = build_net(config.net, input_shape)
    return get_method(config.method)(blueprint, config.method_settings, config.seed, device)


def check_labels(folder: Path, learned: Sequence[Sequence[str]], stream: Stream) -> None:
    """Raise `RunError` if the tasks that a run in a folder has learned are not the first ones of the stream."""
    labels = [[str(label) for label in task] for task in stream.task_labels]
    if list(map(list, learned)) != labels[: len(learned)]:
        raise RunError(f"{folder} holds a run on other tasks; choose another folder, or remove it")
