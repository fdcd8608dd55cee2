"""Nearest class mean: what is kept of a class is the mean of its samples."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.methods.base import Params, Task, kept
from spacenet.methods.shared.class_statistics import UntrainedMethod, UntrainedSettings
from spacenet.utils.tensors import take_tensors


class NCM(UntrainedMethod):
    """The class whose mean is nearest wins. Meant for features of a pretrained encoder. Keeps no samples."""

    name = "ncm"
    reference = (
        "Mensink, Verbeek, Perronnin, Csurka: Distance-Based Image Classification: Generalizing to New Classes at "
        "Near-Zero Cost. TPAMI, 2013"
    )
    settings_from = "There are none to choose."
    settings: UntrainedSettings
    means: Tensor = kept("network/means", Tensor, on_cpu=True)
    """(classes, d)"""

    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        self.means = torch.stack([*self.means, *(h[y == number].mean(0) for number in task.classes)])

    def keep_classes(self, kept: Tensor) -> None:
        self.means = self.means[kept]

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        means = self.classes[-1].stop, self.count_features(input_shape)
        super().check_state(take_tensors(state, {"network/means": means}, "class means"), input_shape)

    def compute_params(self) -> dict[str, Tensor]:
        return {"means": self.means}

    def scores(self, params: Params, h: Tensor) -> Tensor:
        """Minus half the squared distances."""
        return -torch.cdist(h, params["means"]).square() / 2
