"""Images as networks take them."""

from torch import Tensor

from spacenet.errors import SettingsError


def as_images(x: Tensor) -> Tensor:
    """(n, c, h, w), also from images without channels."""
    return x if x.dim() == 4 else x.unsqueeze(1)


def image_shape(input_shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(channels, height, width) of samples that are images with or without channels."""
    if len(input_shape) not in (2, 3):
        raise SettingsError(f"takes images, samples have shape {input_shape}", setting="net")
    channels, height, width = (1, *input_shape)[-3:]
    return channels, height, width
