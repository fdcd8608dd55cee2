"""The settings of `methods.spacenet_experts`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from spacenet.config.ranges import Uniform
from spacenet.errors import SettingsError
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings
from spacenet.methods.shared.score_weights import Weight
from spacenet.methods.shared.sparse_settings import AdaptiveSettings, Rotations


@dataclass(frozen=True)
class ExpertSettings(ClassStatisticsSettings, AdaptiveSettings):
    """How large an expert is, how it is trained, and what is kept of each class."""

    components: Annotated[int, Ge(1), Le(1000)] | None = None
    """Gaussians per class. Default: 1."""
    max_weights: Annotated[int, Ge(1)] | None = None
    """Weights that the experts of all expected tasks may have together; each gets the same part. Default: as many as
    fit into the network."""
    reads: Literal["own", "all"] = "own"
    """Units that an expert's connections come from: its own, or also those of all earlier experts, which stay as they
    are. With all, an expert has more weights and a step takes longer from task to task."""
    rotations: Rotations = "auto"
    """Learn square images in four orientations, with each class in each orientation as a class of its own: in the first
    task, or in all; auto is all for square images, otherwise none. Predictions are the mean over the four. A step takes
    four times as long."""
    contrast: Annotated[float, Ge(0), Le(1000), Uniform(0.0, 2.0)] = 0.0
    """Factor of the supervised contrastive loss, which is added to the cross-entropy where images are rotated."""
    statistics_weight: Weight = 0.0
    """Factor of the log-densities of classes, given the first expert's features, that are added to the scores; with 0
    no statistics are kept. With auto, a fifth of the samples of each task from the second on is not trained on, unless
    that would be fewer than 20 or the task has one class. The factor is the one with the largest accuracy on these
    samples among all classes known then, summed over the tasks; 0.15 before there are any."""
    own_statistics_weight: Weight = 0.0
    """Factor of the log-densities of a task's classes, given the features of its own expert, that are added to the
    scores; with 0 none are kept. It pays where the first expert's features are too few for other tasks' classes. With
    auto, it is chosen in the same way, together with the other factor if that is auto too; 0.05 before there are
    held-out samples."""
    mirror: bool = False
    """Compute statistics on the mean of the features of an image and its mirror image, in a convolutional network. For
    images that are flipped in training too."""
    phantom_classes: Annotated[int, Ge(0)] | None = 0
    """Classes of other tasks that take part in the loss. They have no connections during the task: their score is 0."""
    rewire_fraction: Annotated[float, Ge(0), Le(1)] = 0.0
    """Fraction of the task's connections that is dropped and grown elsewhere after each epoch. An expert has all
    connections between its units, unless `connections` says otherwise: then there is nowhere else to grow."""

    def validate(self) -> None:
        super().validate()
        if self.balance != "none":
            raise SettingsError("experts are compared by their raw scores; it must be none", setting="balance")

    @property
    def keeps_statistics(self) -> bool:
        """Whether there are statistics of classes on the first expert's features."""
        return self.statistics_weight != 0

    @property
    def keeps_own_statistics(self) -> bool:
        """Whether there are statistics of classes on the features of their own expert."""
        return self.own_statistics_weight != 0
