"""The small CNN of the paper's CIFAR experiments: four convolutions and a sparse linear layer, each with batch norm."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.nets.images import as_images, image_shape
from spacenet.nets.ours import blueprint_of
from spacenet.space.blueprint import Blueprint

HIDDEN = (32, 32, 64, 64, 512)


class SmallCnn(nn.Module):
    """The network for images of this shape; `hidden` has the maps of each convolution, and last the linear layer."""

    def __init__(self, input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN, classes: int = 1) -> None:
        super().__init__()
        channels, height, width = image_shape(input_shape)
        *maps, linear = hidden or HIDDEN
        halvings = len(maps) // 2
        if not maps or min(height, width) >> halvings < 1:
            message = f"{len(maps)} convolutions halve images of {height}×{width} {halvings} times; give one or more"
            raise SettingsError(f"{message}, as many as the images allow, and last the linear layer", setting="hidden")
        self.count = len(maps)
        for number, (enter, out) in enumerate(pairwise([channels, *maps]), start=1):
            self.add_module(f"conv{number}", nn.Conv2d(enter, out, 3, padding=1, bias=False))
            self.add_module(f"norm{number}", nn.BatchNorm2d(out))
        positions = (height >> halvings) * (width >> halvings)
        self.linear = nn.Linear(maps[-1] * positions, linear, bias=False)
        self.norm = nn.BatchNorm1d(linear)
        self.output = nn.Linear(linear, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = as_images(x)
        for number in range(1, self.count + 1):
            h = F.relu(self.get_submodule(f"norm{number}")(self.get_submodule(f"conv{number}")(h)))
            if number % 2 == 0:
                h = F.max_pool2d(h, 2)
        h = F.relu(self.norm(self.linear(h.flatten(1))))
        return self.output(h)  # type: ignore[no-any-return]


def build_small_cnn(input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN) -> Blueprint:
    """The small CNN in the space."""
    hidden = tuple(hidden or HIDDEN)
    return blueprint_of(SmallCnn, input_shape, {"hidden": (2,) * len(hidden)}, hidden=hidden)
