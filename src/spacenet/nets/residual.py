"""Residual networks: ResNet-18, and wide residual networks (Zagoruyko and Komodakis 2016)."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.nets.images import as_images, image_shape
from spacenet.nets.ours import blueprint_of
from spacenet.space.blueprint import Blueprint

GROUPS, NARROW = 3, (4, 8, 16)
"""Groups of a wide residual network, and their widths where only its structure counts."""


def conv(enter: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(enter, out, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    """Two convolutions, each followed by batch norm, and a shortcut around them."""

    def __init__(self, enter: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv(enter, out, 3, stride), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = conv(out, out, 3), nn.BatchNorm2d(out)
        widens = () if enter == out else (conv(enter, out, 1, stride), nn.BatchNorm2d(out))
        self.shortcut = nn.Sequential(*widens)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 for images of this shape: a 3×3 stem, then four stages of two blocks, each with twice the maps."""

    def __init__(self, input_shape: tuple[int, ...], *, width: int = 64, classes: int = 1) -> None:
        super().__init__()
        self.stem, self.norm = conv(image_shape(input_shape)[0], width, 3), nn.BatchNorm2d(width)
        widths = [width, *(width << stage for stage in range(4))]
        for stage, (enter, out) in enumerate(pairwise(widths), start=1):
            blocks = Block(enter, out, 1 if stage == 1 else 2), Block(out, out, 1)
            self.add_module(f"stage{stage}", nn.Sequential(*blocks))
        self.output = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm(self.stem(as_images(x))))
        for stage in range(1, 5):
            h = self.get_submodule(f"stage{stage}")(h)
        return self.output(h.mean((2, 3)))  # type: ignore[no-any-return]


class WideBlock(nn.Module):
    """Two convolutions with batch norm and ReLU before each, and a shortcut around them."""

    def __init__(self, enter: int, out: int, stride: int, *, first: bool = False) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(enter), conv(enter, out, 3, stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(out), conv(out, out, 3)
        self.shortcut = conv(enter, out, 1, stride) if first else None

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(x))
        inner: Tensor = self.conv2(F.relu(self.norm2(self.conv1(h))))
        kept: Tensor = x if self.shortcut is None else self.shortcut(h)
        return kept + inner


class WideResNet(nn.Module):
    """WRN-depth-widen for images of this shape; or with other `widths`: those of the stem and of the three groups."""

    def __init__(
        self, input_shape: tuple[int, ...], *, depth: int = 28, widths: tuple[int, ...] = (), classes: int = 1
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise SettingsError(
                f"a wide residual network has 6 n + 4 layers (10, 16, 22, …), not {depth}", setting="net"
            )
        self.stem = conv(image_shape(input_shape)[0], widths[0], 3)
        for group, (enter, out) in enumerate(pairwise(widths), start=1):
            first = WideBlock(enter, out, 1 if group == 1 else 2, first=True)
            others = [WideBlock(out, out, 1) for _ in range((depth - 4) // 6 - 1)]
            self.add_module(f"group{group}", nn.Sequential(first, *others))
        self.norm, self.output = nn.BatchNorm2d(widths[-1]), nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(as_images(x))
        for group in range(1, 4):
            h = self.get_submodule(f"group{group}")(h)
        return self.output(F.relu(self.norm(h)).mean((2, 3)))  # type: ignore[no-any-return]


def build_resnet18(input_shape: tuple[int, ...], *, width: int = 64) -> Blueprint:
    """ResNet-18 in the space."""
    return blueprint_of(ResNet18, input_shape, {"width": 2}, width=width)


def build_wide_resnet(
    input_shape: tuple[int, ...], hidden: tuple[int, ...] = (), *, depth: int = 28, widen: int = 10, stem: int = 16
) -> Blueprint:
    """WRN-depth-widen in the space; `hidden` may give the widths of the stem and of the three groups instead."""
    widths = tuple(hidden) or (stem, *(stem * widen << group for group in range(3)))
    if len(widths) != GROUPS + 1:
        message = f"a wide residual network has {GROUPS + 1} widths (stem and groups), not {len(widths)}"
        raise SettingsError(message, setting="hidden")
    return blueprint_of(WideResNet, input_shape, {"widths": (2, *NARROW)}, depth=depth, widths=widths)
