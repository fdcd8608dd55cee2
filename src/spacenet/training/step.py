"""One training step, and on a GPU its recorded form: small networks are bound by launching kernels there."""

import torch
from torch import Tensor

from spacenet.data.augmentation import CropAndFlip
from spacenet.data.stream import Samples
from spacenet.methods.base import Batch, Method
from spacenet.training.hardware import Hardware
from spacenet.utils.optimizers import Optimizer

WARM_UP = 3


class Step:
    """Trains on the rows it is called with. Nothing in it waits for the device."""

    def __init__(
        self, method: Method, data: Samples, optimizer: Optimizer, hardware: Hardware, augment: CropAndFlip | None
    ) -> None:
        self.method, self.data, self.optimizer = method, data, optimizer
        self.hardware, self.augment, self.autocast = hardware, augment, hardware.autocast()
        self.channels_last = data.x.dim() == 4 and (data.x.is_cuda or hardware.precision == "bf16")
        self.loss, self.correct = (torch.zeros((), device=hardware.device) for _ in range(2))
        self.seen = 0

    def __call__(self, rows: Tensor) -> None:
        own, weight = (rows, 1.0) if self.hardware.fabric is None else self.hardware.share(rows)
        self.seen += len(own)
        self.compute(own, weight)

    def compute(self, rows: Tensor, weight: float = 1.0) -> None:
        """Forward, backward and the method's step; `weight` is this process's part in the batch."""
        batch, output = self._forward(rows)
        loss = self.method.loss(output, batch)
        self.optimizer.zero_grad()
        self.method.backward(loss)
        if self.hardware.fabric is not None:
            self.hardware.add_up((p.grad for p in self.optimizer.parameters if p.grad is not None), weight)
        self.method.step(self.optimizer)
        self.loss += loss.detach() * len(rows)
        correct = (output.argmax(1) == self.method.target(batch)).sum()
        # A method may show each sample in several forms.
        self.correct += correct if len(output) == len(rows) else correct * (len(rows) / len(output))

    def update_statistics(self, rows: Tensor) -> None:
        """Only update what a forward pass changes: the running statistics of batch norm."""
        with torch.no_grad():
            self._forward(self.hardware.share(rows)[0])

    def _forward(self, rows: Tensor) -> tuple[Batch, Tensor]:
        x = self.data.x.index_select(0, rows) if self.augment is None else self.augment(rows)
        if self.channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        weight = None if self.data.weight is None else self.data.weight.index_select(0, rows)
        batch = Batch(x, self.data.y.index_select(0, rows), rows, weight)
        with self.autocast:
            return batch, self.method.forward(batch)

    def summarize(self) -> tuple[float, float]:
        """Mean loss and accuracy (0 to 1) since the last call, over all processes. Waits for the device."""
        seen = torch.tensor(float(self.seen), device=self.hardware.device)
        self.hardware.add_up([self.loss, self.correct, seen])
        loss, accuracy = float(self.loss) / float(seen), float(self.correct) / float(seen)
        self.loss.zero_()
        self.correct.zero_()
        self.seen = 0
        return loss, accuracy


class RecordedStep(Step):
    """A step that is recorded as a CUDA graph once it has run a few times, and replayed from then on.

    Everything a step reads lies at a fixed place that is changed in place (rows, weights, where connections lie), so
    one recording lasts for the whole task. Batches of another size, the last of an epoch, are computed as usual.
    """

    graph: torch.cuda.CUDAGraph | None = None
    rows: Tensor | None = None
    warmed = 0

    def __call__(self, rows: Tensor) -> None:
        if self.rows is None:
            self.rows = rows.clone()
        if len(rows) != len(self.rows):
            super().__call__(rows)
            return
        self.seen += len(rows)
        self.rows.copy_(rows)
        if self.graph is None and self.warmed < WARM_UP:
            self.warmed += 1
            self._warm_up(self.rows)
            return
        if self.graph is None:
            self.graph = self._record(self.rows)
        self.graph.replay()

    def _warm_up(self, rows: Tensor) -> None:
        """The first steps run on a stream of their own, so that libraries initialize before the recording."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.compute(rows)
        torch.cuda.current_stream().wait_stream(stream)

    def _record(self, rows: Tensor) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with torch.cuda.graph(graph):
            self.compute(rows)
        return graph
