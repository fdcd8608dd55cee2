"""One run: learn a stream with a method, measure, save after every epoch, resume where it stopped.

A run folder holds config.toml, run.log, analysis.safetensors, and in the end metrics.json and model.safetensors; until
then state.safetensors, from which the run goes on.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from spacenet.config.run import RunConfig, from_mapping, read_toml, to_toml
from spacenet.data.augmentation import check_images
from spacenet.data.streams import Stream, build_stream
from spacenet.errors import RunError, SpaceFull
from spacenet.experiments.analysis import keep_truncated, save_activations, save_confusion
from spacenet.experiments.callbacks import Callback, FileLogger
from spacenet.experiments.metrics import accuracies
from spacenet.experiments.record import Record, TaskRecord
from spacenet.methods import get_method
from spacenet.methods.base import Method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.file import save_model
from spacenet.model.model import Model, Recipe
from spacenet.nets import build_net
from spacenet.training.hardware import Hardware, find_hardware
from spacenet.training.loop import Epoch, Position, learn_task
from spacenet.utils.files import load_tensors, save_tensors, save_text
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.tensors import in_section, section

CONFIG, METRICS, MODEL, STATE, LOG = "config.toml", "metrics.json", "model.safetensors", "state.safetensors", "run.log"
MEASURED = ("stream", "evaluated_on", "tasks_learned", "acc", "bwt", "forgetting", "fwt", "matrix", "task_incremental")
"""Metrics that the model file holds too: what follows from the seed alone, so that equal runs make equal files."""


def check(config: RunConfig) -> None:
    """Raise what is wrong with a config, before anything is written: its data, its cut, its settings."""
    _prepare(config, find_hardware(config.training).device)


def _prepare(config: RunConfig, device: torch.device) -> tuple[Stream, Method, list[str]]:
    stream = build_stream(config.stream, config.data)
    blueprint = build_net(config.net, stream.input_shape)
    if config.training.augment != "none":
        check_images(stream.input_shape)
    method = get_method(config.method)(blueprint, config.options, config.seed, device)
    return stream, method, method.check(stream)


def create_folder(config: RunConfig, folder: Path) -> None:
    """Make the folder of a new run."""
    if (folder / CONFIG).exists():
        raise RunError(f"{folder} holds a run already; go on with --resume {folder}, or choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    save_text(folder / CONFIG, to_toml(config))


def load_config(folder: Path) -> RunConfig:
    """The config of the run in a folder."""
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder} holds no run (there is no {CONFIG} in it)")
    return from_mapping(read_toml(folder / CONFIG))


def load_metrics(folder: Path) -> dict[str, Any] | None:
    """The metrics of a finished run; None if it is not finished."""
    path = folder / METRICS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


class Run:
    """A run in its folder, at the point where it stopped last."""

    def __init__(self, folder: Path, callbacks: Sequence[Callback] = (), hardware: Hardware | None = None) -> None:
        """`hardware` is given where several processes share the run; only the one that leads writes and watches."""
        self.folder, self.config = folder, load_config(folder)
        torch.set_num_threads(self.config.training.threads)
        self.hardware = hardware or find_hardware(self.config.training)
        self.callbacks = [*callbacks, FileLogger(folder / LOG)] if self.hardware.leads else []
        self.stream, self.method, self.warnings = _prepare(self.config, self.hardware.device)
        self.tests = [task.test for task in self.stream]
        self.test_x = torch.cat([test.x for test in self.tests]).to(self.hardware.device)
        self.record = Record()
        self.start: Position | None = None
        if (folder / STATE).is_file():
            self._restore()
        else:
            self.record.untrained, _ = self._evaluate(0)

    def execute(self) -> dict[str, Any]:
        """Learn what is still to be learned; returns the metrics."""
        self._tell(lambda callback: callback.begin(self.config, self.stream, len(self.record.matrix), self.warnings))
        try:
            for index in range(len(self.record.matrix), len(self.stream)):
                self._learn(index)
            metrics = self._finish()
        except SpaceFull as full:
            # What was learned before stays usable: the model and its metrics are written as for a finished run.
            self._finish(stopped=f"task {len(self.record.matrix) + 1} was not learned: {full}")
            raise
        finally:
            self._tell(lambda callback: callback.close())
        if self.hardware.leads:
            (self.folder / STATE).unlink(missing_ok=True)
        return metrics

    def _learn(self, index: int) -> None:
        task, began = self.stream[index], time.perf_counter()
        if self.start is None:
            self.record.tasks.append(TaskRecord(index, [str(label) for label in task.labels]))
        current = self.record.tasks[-1]
        before = current.seconds

        def on_batch(done: int, total: int) -> None:
            for callback in self.callbacks:
                callback.batch(index, done, total)

        def on_epoch(epoch: Epoch, optimizer: Optimizer) -> None:
            current.seconds = before + time.perf_counter() - began
            notes = self.method.epoch_notes()
            current.epochs.append({"loss": epoch.loss, "accuracy": epoch.accuracy, **notes})
            self._tell(lambda callback: callback.epoch(epoch))
            self._save(epoch.epoch + 1, optimizer)

        learn_task(
            self.method,
            task,
            self.config.training,
            hardware=self.hardware,
            start=self.start,
            on_batch=on_batch,
            on_epoch=on_epoch,
        )
        self.start = None
        row, task_il = self._evaluate(index + 1)
        self.record.matrix.append(row)
        self.record.task_incremental.append(task_il)
        current.accuracy, current.layers = row[index], self.method.layers()
        current.bytes_kept, current.extra_bytes = self.method.bytes_kept(), self.method.extra_bytes()
        current.images_kept, current.parameters = len(self.method.memory), self.method.parameters_kept()
        planned = {layer.name: layer.size for layer in self.method.blueprint.hidden}
        current.units_added = sum(layer.units - planned.get(layer.name, layer.units) for layer in current.layers)
        current.seconds = before + time.perf_counter() - began
        if index == 0 and self.hardware.leads:
            save_activations(self.folder, self.method, task)
        self._save()
        self._tell(lambda callback: callback.task(self.record))

    def _evaluate(self, learned: int) -> tuple[list[float], list[float]]:
        """Accuracy on each task after so many were learned. Those to come score 0: nobody can name their classes."""
        to_come = [0.0] * (len(self.stream) - learned)
        if not learned:
            return to_come, to_come
        tests = self.tests[:learned]
        output = self.method.predict_all(self.test_x[: sum(map(len, tests))])
        free, task_il = accuracies(output, tests, [task.classes for task in self.stream[:learned]])
        return free + to_come, task_il + to_come

    def _save(self, epochs_done: int = 0, optimizer: Optimizer | None = None) -> None:
        """Save the state; an optimiser is given in the middle of a task."""
        if not self.hardware.leads:
            return
        tensors = in_section("model", self.method.model())
        tensors |= in_section("memory", {str(task): rows for task, rows in self.method.memory.rows.items()})
        if optimizer is not None:
            tensors |= in_section("task", self.method.task_state())
            tensors |= in_section("optimizer", optimizer.state_tensors())
        facts = {"epochs_done": epochs_done, "record": dataclasses.asdict(self.record)}
        save_tensors(self.folder / STATE, tensors, facts)

    def _restore(self) -> None:
        tensors, facts = load_tensors(self.folder / STATE)
        self.record = Record.from_facts(facts["record"])
        self.method.tasks_learned = len(self.record.matrix)
        self.method.classes = [task.classes for task in self.stream[: len(self.record.tasks)]]
        self.method.load_model(section(tensors, "model"))
        self.method.memory.restore(self.stream, {int(k): rows for k, rows in section(tensors, "memory").items()})
        if facts["epochs_done"]:
            self.start = Position(facts["epochs_done"], section(tensors, "task"), section(tensors, "optimizer"))

    def _finish(self, stopped: str | None = None) -> dict[str, Any]:
        metrics = self.record.metrics(self.config, self.hardware.describe(), stopped)
        if not self.hardware.leads:
            return metrics
        self._save_model(metrics)
        learned = self.stream[: len(self.record.matrix)]
        save_confusion(self.folder, self.method, learned)
        keep_truncated(self.folder, self.method, learned, self.stream.input_shape)
        save_text(self.folder / METRICS, json.dumps(metrics, indent=1) + "\n")
        self._tell(lambda callback: callback.end(metrics))
        return metrics

    def _save_model(self, metrics: dict[str, Any]) -> None:
        """A model to use, where the method has a space; of other methods the bare tensors."""
        config, method, learned = self.config, self.method, self.stream.cut[: len(self.record.matrix)]
        if not isinstance(method, SparseMethod) or not learned:
            save_tensors(self.folder / MODEL, method.model(), {"method": config.method})
            return
        anywhere = dataclasses.replace(config.training, device="auto", devices=1)
        recipe = Recipe(config.method, config.seed, config.net, anywhere, method.settings, self.stream.input_shape)
        measured = {name: value for name, value in metrics.items() if name in MEASURED}
        tasks = [tuple(labels) for labels in learned]
        save_model(self.folder / MODEL, Model.of(recipe, method, self.stream.normalization, tasks, measured))

    def _tell(self, event: Callable[[Callback], None]) -> None:
        for callback in self.callbacks:
            event(callback)
