"""What the plots of a report need beyond metrics and model, computed while the data is there."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import dacite
import numpy as np
import torch
from torch import Tensor

from spacenet.data.stream import Samples, Stream, Task
from spacenet.experiments.metrics import accuracies
from spacenet.methods.base import Method
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.density.statistics import count_floats
from spacenet.model.scores import Calibration, Mistake, Mistakes, confident_mistakes, displayable
from spacenet.utils.tensors import in_section, load_tensors, save_tensors, section

ANALYSIS = "analysis.safetensors"
SAMPLES_PER_CLASS = 50
CLASSES = 2
MANY_SAMPLES, SAMPLES_PER_TASK = 20_000, 2_000
"""With more test samples than the first, at most the second number per task is used for the truncation curve."""
ROWS = 16_384
"""Of scores that become probabilities at once."""
MAX_STEPS = 8
"""Points of the truncation curve."""


@dataclass(frozen=True)
class Truncated:
    """The accuracy with fewer directions of each Gaussian that describes a class."""

    directions: int
    floats: int
    """Numbers per class."""
    acc: float
    """Mean accuracy over all tasks in the end, in percent."""


@dataclass
class Analysis:
    """What was kept of a run. What a method does not provide is left out."""

    confusion: Tensor | None = None
    """(classes, classes): how many test samples of the row's class were predicted as the column's, in the end."""
    activations: Mapping[str, Tensor] = field(default_factory=dict)
    """For each hidden layer (samples, units), after the first task, for test samples of two of its classes."""
    labels: tuple[str, ...] = ()
    """The label of each of those samples."""
    class_memory: ClassMemory | None = None
    """What was kept of each class, for methods that keep class statistics."""
    truncated: tuple[Truncated, ...] = ()
    """Accuracy with less of it, from the fewest directions to all that were kept."""
    calibration: Calibration | None = None
    """Of the softmax of the scores, in the end."""
    mistakes: Mistakes = field(default_factory=Mistakes)
    """Test samples that are predicted wrongly in the end."""

    def record_activations(self, method: Method, task: Task) -> None:
        """Keep the activations for samples of two classes of the first task."""
        chosen = task.classes[:CLASSES]
        rows = torch.cat([(task.test.y == number).nonzero().flatten()[:SAMPLES_PER_CLASS] for number in chosen])
        found = method.activations(task.test.x[rows].to(method.device))
        labels = [str(task.labels[int(number) - task.classes.start]) for number in task.test.y[rows]]
        self.activations = {name: values.half().float() for name, values in found.items()}
        self.labels = tuple(labels) if found else ()

    def record_predictions(self, output: Tensor, stream: Stream, tests: Sequence[Samples]) -> Calibration:
        """Keep which class is predicted as which after the last task, how confidently, and the worst mistakes. Returns
        the calibration.

        `output` are the logits for the test samples of the tasks learned, one task after the other.
        """
        truth, classes = torch.cat([test.y for test in tests]), output.shape[1]
        predicted = output.argmax(1)
        confidence = torch.cat([part.double().softmax(1).amax(1) for part in output.split(ROWS)]).nan_to_num(0.0)
        counts = (truth * classes + predicted).bincount(minlength=classes * classes)
        self.confusion = counts.int().view(classes, classes)
        self.calibration = Calibration.of(confidence.numpy(), (predicted == truth).numpy())
        rows = confident_mistakes(confidence.numpy(), predicted.numpy(), truth.numpy())
        starts, labels = [0, *accumulate(map(len, tests))], [str(label) for label in stream.labels]
        found, inputs = [], []
        for row in rows.tolist():
            task = bisect_right(starts, row) - 1
            place, x = stream.raw_test_sample(stream[task], row - starts[task])
            true, wrong = labels[int(truth[row])], labels[int(predicted[row])]
            found.append(Mistake(f"test sample {place}", true, wrong, 100 * float(confidence[row])))
            inputs.append(x)
        scale = stream.resolved_preprocessing.scale or 1.0
        self.mistakes = Mistakes(tuple(found), displayable(np.stack(inputs), scale)) if found else Mistakes()
        return self.calibration

    def record_truncation(
        self, method: Method, tests: Sequence[Samples], classes: Sequence[range], input_shape: tuple[int, ...]
    ) -> None:
        """Keep what is stored per class, and the accuracy with less of it. Nothing is trained for this."""
        memory = method.class_memory(input_shape)
        if memory is None:
            return
        tests = evenly_spaced(tests)
        x = torch.cat([test.x for test in tests])
        found = []
        steps = truncation_steps(memory.directions)
        for directions, output in zip(steps, method.predict_truncated(x, steps), strict=True):
            class_il, _ = accuracies(output, tests, classes)
            floats = count_floats(memory.gaussians, directions, memory.dimensions)
            found.append(Truncated(directions, floats, sum(class_il) / len(class_il)))
        self.class_memory, self.truncated = memory, tuple(found)

    def save(self, folder: Path) -> None:
        """Write it into a run's folder."""
        tensors = in_section("activations", {name: values.half() for name, values in self.activations.items()})
        if self.confusion is not None:
            tensors["confusion"] = self.confusion
        if self.mistakes.inputs is not None:
            tensors["mistakes"] = torch.from_numpy(self.mistakes.inputs)
        facts = {
            "labels": list(self.labels),
            "calibration": asdict(self.calibration) if self.calibration else None,
            "mistakes": [asdict(each) for each in self.mistakes.each],
            "class_memory": asdict(self.class_memory) if self.class_memory else None,
            "truncated": [asdict(each) for each in self.truncated],
        }
        save_tensors(folder / ANALYSIS, tensors, facts)

    @classmethod
    def load(cls, folder: Path) -> "Analysis":
        """Read what `save` wrote; empty if there is nothing."""
        path = folder / ANALYSIS
        if not path.is_file():
            return cls()
        tensors, facts = load_tensors(path)
        activations = {name: values.float() for name, values in section(tensors, "activations").items()}
        inputs = tensors["mistakes"].numpy() if "mistakes" in tensors else None
        each = tuple(Mistake(**mistake) for mistake in facts.pop("mistakes", []))
        found = {**facts, "confusion": tensors.get("confusion"), "activations": activations}
        return replace(dacite.from_dict(cls, found, dacite.Config(cast=[tuple])), mistakes=Mistakes(each, inputs))


def truncation_steps(directions: int) -> list[int]:
    """0, 1, 2, 4, … and all directions; where that makes too many steps, the smallest are left out."""
    powers = [2**exponent for exponent in range(directions.bit_length()) if 2**exponent < directions]
    return [0, *powers[-(MAX_STEPS - 2) :], directions]


def evenly_spaced(tests: Sequence[Samples]) -> list[Samples]:
    """All test samples, or if there are very many, an evenly spaced part of each task's."""
    if sum(map(len, tests)) <= MANY_SAMPLES:
        return list(tests)
    counts = [min(len(test), SAMPLES_PER_TASK) for test in tests]
    rows = [torch.arange(count) * len(test) // max(1, count) for test, count in zip(tests, counts, strict=True)]
    return [Samples(test.x[chosen], test.y[chosen]) for test, chosen in zip(tests, rows, strict=True)]
