"""Modules as other packages write them, narrow and for small images."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def vgg11_bn(classes: int = 4) -> nn.Module:
    """Convolutions, batch norm and pooling in one `Sequential`; flattened maps; dropout before the classifier."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (6, "M", 8, "M", 10, 10, "M"):
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        else:
            layers += [
                nn.Conv2d(channels, width, kernel_size=3, padding=1),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            channels = width

    class VGG(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(*layers)
            self.avgpool = nn.AdaptiveAvgPool2d((2, 2))
            self.classifier = nn.Sequential(
                nn.Linear(channels * 4, 16), nn.ReLU(True), nn.Dropout(), nn.Linear(16, classes)
            )

        def forward(self, x: Tensor) -> Tensor:
            return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))  # type: ignore[no-any-return]

    return VGG()


class BasicBlock(nn.Module):
    """A residual block with a projection where the shape changes."""

    def __init__(self, enter: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(enter, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or enter != out:
            self.downsample = nn.Sequential(nn.Conv2d(enter, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)  # type: ignore[no-any-return]


class ResNet18(nn.Module):
    """A 7×7 stem with pooling, four stages of two blocks."""

    def __init__(self, classes: int = 4, width: int = 4) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        widths = [width, width, 2 * width, 3 * width, 4 * width]
        for stage in range(1, 5):
            enter, out = widths[stage - 1 : stage + 1]
            blocks = BasicBlock(enter, out, 1 if stage == 1 else 2), BasicBlock(out, out, 1)
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))  # type: ignore[no-any-return]


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, projection; added where the shape stays."""

    def __init__(self, enter: int, out: int, stride: int, ratio: int = 2) -> None:
        super().__init__()
        inner = enter * ratio
        self.added = stride == 1 and enter == out
        self.conv = nn.Sequential(
            *(nn.Conv2d(enter, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(inplace=True)),
            *(nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(True)),
            *(nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x)
        return x + out if self.added else out


def mobilenet_v2(classes: int = 4) -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 6, 3, 1, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6(inplace=True))
    blocks = InvertedResidual(6, 6, 1), InvertedResidual(6, 8, 2), InvertedResidual(8, 8, 1)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, classes))


class DenseLayer(nn.Module):
    """Reads all that came before, concatenated."""

    def __init__(self, enter: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(enter), nn.Conv2d(enter, 2 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(2 * growth), nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        h = self.conv1(F.relu(self.norm1(torch.cat(features, 1))))
        return self.conv2(F.relu(self.norm2(h)))  # type: ignore[no-any-return]


class DenseNet(nn.Module):
    """Two dense blocks with a transition between them; the classifier reads a concatenation."""

    def __init__(self, classes: int = 4, growth: int = 4) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.block1 = nn.ModuleList(DenseLayer(6 + growth * n, growth) for n in range(2))
        self.norm1, self.conv1 = nn.BatchNorm2d(6 + 2 * growth), nn.Conv2d(6 + 2 * growth, 7, 1, bias=False)
        self.block2 = nn.ModuleList(DenseLayer(7 + growth * n, growth) for n in range(2))
        self.norm2, self.fc = nn.BatchNorm2d(7 + 2 * growth), nn.Linear(7 + 2 * growth, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = [self.conv0(x)]
        for layer in self.block1:
            features.append(layer(features))
        features = [F.avg_pool2d(self.conv1(F.relu(self.norm1(torch.cat(features, 1)))), 2)]
        for layer in self.block2:
            features.append(layer(features))
        h = F.adaptive_avg_pool2d(F.relu(self.norm2(torch.cat(features, 1))), (1, 1))
        return self.fc(torch.flatten(h, 1))  # type: ignore[no-any-return]


class ConvNeXtBlock(nn.Module):
    """A wide depthwise kernel, normalization of each channel, GELU, a learned scale of the branch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.GroupNorm(width, width)
        self.pwconv1, self.pwconv2 = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, width, 1)
        self.gamma = nn.Parameter(0.5 * torch.ones(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.pwconv2(F.gelu(self.pwconv1(self.norm(self.dwconv(x)))))
        return x + self.gamma * h


def convnext(classes: int = 4) -> nn.Module:
    stem = nn.Conv2d(3, 8, 2, 2), nn.BatchNorm2d(8)
    return nn.Sequential(*stem, ConvNeXtBlock(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(8, classes))


class GroupedWithGate(nn.Module):
    """A convolution in groups whose channels a squeeze-and-excitation gate weighs, and a residual addition."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.stem, self.bn1 = nn.Conv2d(3, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12)
        self.grouped, self.bn2 = nn.Conv2d(12, 24, 3, padding=1, groups=6), nn.BatchNorm2d(24)
        self.reduce, self.expand = nn.Linear(24, 6), nn.Linear(6, 24)
        self.project, self.fc = nn.Conv2d(24, 12, 1), nn.Linear(12 * 4, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.bn1(self.stem(x)))
        g = F.silu(self.bn2(self.grouped(h)))
        batch, channels = g.shape[:2]
        gate = torch.sigmoid(self.expand(F.relu(self.reduce(g.mean((2, 3)))))).view(batch, channels, 1, 1)
        return self.fc(F.max_pool2d(h + self.project(g * gate), 4).flatten(1))  # type: ignore[no-any-return]


def signal_net(classes: int = 4) -> nn.Module:
    """One-dimensional convolutions."""
    first = nn.Conv1d(3, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2)
    second = nn.Conv1d(8, 10, 3, padding=2, dilation=2), nn.ReLU(), nn.AvgPool1d(2)
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(10, classes))


def randomize(module: nn.Module) -> nn.Module:
    """Other values than the initial ones of normalizations, so that a mistake in them shows."""
    for each in module.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.normal_(each.weight, 1.0, 0.3)
            nn.init.normal_(each.bias)
            if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
                statistics: Any = each
                nn.init.normal_(statistics.running_mean)
                nn.init.uniform_(statistics.running_var, 0.5, 2.0)
    return module


IMAGE_NETS = {
    "vgg11-bn": vgg11_bn,
    "resnet-18": ResNet18,
    "mobilenet-v2": mobilenet_v2,
    "densenet": DenseNet,
    "convnext": convnext,
    "grouped": GroupedWithGate,
}
