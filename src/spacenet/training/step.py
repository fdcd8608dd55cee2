"""One training step, and on a GPU its recorded form: small networks are bound by launching kernels there."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from spacenet.data.augmentation import CropAndFlip
from spacenet.data.stream import Samples
from spacenet.methods.base import Batch, Method
from spacenet.training.hardware import Hardware

WARM_UP = 3


class Step:
    """Trains on the rows it is called with. Nothing in it waits for the device."""

    def __init__(
        self, method: Method, data: Samples, optimizer: Optimizer, hardware: Hardware, augment: CropAndFlip | None
    ) -> None:
        self.method, self.data, self.optimizer = method, data, optimizer
        self.hardware, self.augment, self.parameters = hardware, augment, method.parameters()
        self.loss, self.right = (torch.zeros((), device=hardware.device) for _ in range(2))
        self.seen = 0

    def __call__(self, rows: Tensor) -> None:
        own = self.hardware.share(rows)
        self.seen += len(own)
        self.compute(own, self.hardware.part(own, rows))

    def compute(self, rows: Tensor, weight: float) -> None:
        """Forward, backward and the method's step; `weight` is this process's part in the batch."""
        batch, output = self._forward(rows)
        loss = self.method.loss(output, batch)
        for parameter in self.parameters:  # as zero_grad does, which takes its time
            parameter.grad = None
        loss.backward()
        self.hardware.add_up((p.grad for p in self.parameters if p.grad is not None), weight)
        self.method.step(self.optimizer)
        self.loss += loss.detach() * len(rows)
        right = output.detach().argmax(1) == self.method.target(batch)
        self.right += right.sum() * (len(rows) / len(right))  # a method may show each sample in several forms

    def settle(self, rows: Tensor) -> None:
        """Only what a forward pass changes by itself: batch norm's statistics."""
        with torch.no_grad():
            self._forward(self.hardware.share(rows))

    def _forward(self, rows: Tensor) -> tuple[Batch, Tensor]:
        batch = self._pick(rows)
        with self.hardware.autocast():
            return batch, self.method.forward(batch)

    def _pick(self, rows: Tensor) -> Batch:
        batch = Batch.pick(self.data, rows) if self.augment is None else Batch.with_inputs(self.augment(rows), self.data, rows)
        if batch.x.is_cuda and batch.x.dim() == 4:
            return Batch(batch.x.contiguous(memory_format=torch.channels_last), batch.y, batch.rows)
        return batch

    def figures(self) -> tuple[float, float]:
        """Mean loss and part of right answers since the last call, over all processes. Waits for the device."""
        seen = torch.tensor(float(self.seen), device=self.hardware.device)
        self.hardware.add_up([self.loss, self.right, seen])
        loss, right = float(self.loss) / float(seen), float(self.right) / float(seen)
        self.loss.zero_()
        self.right.zero_()
        self.seen = 0
        return loss, right


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
            self._beside(self.rows)
            return
        if self.graph is None:
            self.graph = self._record(self.rows)
        self.graph.replay()

    def _beside(self, rows: Tensor) -> None:
        """The first steps go to a stream of their own, so that libraries set themselves up before the recording."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.compute(rows, 1.0)
        torch.cuda.current_stream().wait_stream(stream)

    def _record(self, rows: Tensor) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.compute(rows, 1.0)
        return graph
