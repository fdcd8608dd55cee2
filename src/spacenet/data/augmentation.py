"""Augmentation on the device: random crops of the padded images, flipped at random."""

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from spacenet.data.stream import Samples
from spacenet.errors import SettingsError

PADDING = 4


def check_images(shape: tuple[int, ...]) -> None:
    """Raise `SettingsError` if samples of this shape cannot be augmented."""
    if len(shape) not in (2, 3):
        problem = f"only images can be cropped and flipped, and samples have the shape {shape}"
        raise SettingsError(problem, setting="augment")


class CropAndFlip:
    """Crops and flips a task's images, differently in each epoch.

    All random numbers of an epoch are drawn before it, on the CPU, so that they are the same on every device.
    """

    def __init__(self, data: Samples) -> None:
        self.shape, device = data.x.shape[1:], data.x.device
        channels_first = data.x.reshape(len(data), -1, *self.shape[-2:])
        self.padded = F.pad(channels_first, [PADDING] * 4)
        self.top, self.left, self.flipped = (torch.zeros(len(data), dtype=torch.long, device=device) for _ in range(3))
        sizes = (self.padded.shape[1], *self.shape[-2:])
        self.channel, self.row, self.column = (torch.arange(size, device=device) for size in sizes)

    def draw(self, rng: Generator) -> None:
        """Draw new crops and flips; in place, so that a CUDA graph that was recorded before uses them."""
        for place, choices in ((self.top, 2 * PADDING + 1), (self.left, 2 * PADDING + 1), (self.flipped, 2)):
            place.copy_(torch.randint(choices, (len(place),), generator=rng))

    def __call__(self, rows: Tensor) -> Tensor:
        """These images, cropped and flipped as drawn for this epoch."""
        y = self.top[rows, None] + self.row
        column = torch.where(self.flipped[rows, None] > 0, self.shape[-1] - 1 - self.column, self.column)
        x = self.left[rows, None] + column
        image, channel = rows[:, None, None, None], self.channel[:, None, None]
        picked = self.padded[image, channel, y[:, None, :, None], x[:, None, None, :]]
        return picked.reshape(len(rows), *self.shape)
