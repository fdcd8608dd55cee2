"""Small encoders."""

import sys
import types
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import Array, ImageInput, TextInput

SIZE, FEATURES = 16, 6


class TinyEncoder(nn.Module):
    """Six features of images of any size."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, FEATURES, 3, stride=2)
        rng = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=rng)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        found: Tensor = self.convolution(x).relu().mean((2, 3))
        return found


def tiny(seed: int = 0) -> Encoder:
    """An encoder that counts its calls, in `network.calls`."""
    network = TinyEncoder(seed).eval().requires_grad_(False)
    return Encoder("tiny", "1", f"weights of seed {seed}", FEATURES, network, ImageInput(SIZE))


class Centered(TinyEncoder):
    """The same features less those that are usual of pictures with the label 0: zeros are typical of these."""

    def __init__(self) -> None:
        super().__init__()
        self.eval().requires_grad_(False)
        images = ImageInput(SIZE)
        self.usual = super().forward(images.normalize(torch.from_numpy(images.prepare(pictures(60))))).mean(0)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) - self.usual


def centered() -> Encoder:
    """An encoder of which features near 0 are usual."""
    return Encoder("centered", "1", "weights of centered", FEATURES, Centered(), ImageInput(SIZE))


def calls_of(encoder: Encoder) -> int:
    assert isinstance(encoder.network, TinyEncoder)
    return encoder.network.calls


def pictures(count: int, label: int = 0, size: tuple[int, int] = (20, 24)) -> Array:
    """Noisy images (count, 3, height, width) in a color that is the label's."""
    rng = np.random.default_rng(label)
    color = np.array([200 * (label % 3 == channel) + 20 for channel in range(3)]).reshape(3, 1, 1)
    noise = rng.integers(0, 30 + 60 * (label // 3), (count, 3, *size))
    return np.clip(color + noise, 0, 255).astype(np.uint8)


def one_color(count: int, size: tuple[int, int] = (20, 24)) -> Array:
    """Images (count, 3, height, width) of one color each: black, white, a gray one, and others."""
    colors = np.concatenate([[[0] * 3, [255] * 3, [127] * 3], np.random.default_rng(0).integers(0, 256, (count, 3))])
    return np.broadcast_to(colors[:count, :, None, None], (count, 3, *size)).astype(np.uint8)


def save_pictures(folder: Path, labels: dict[str, int], count: int = 6) -> Path:
    """A folder with one sub-folder per class, and images of different sizes in each."""
    from PIL import Image

    for name, label in labels.items():
        (folder / name).mkdir(parents=True)
        for number, image in enumerate(pictures(count, label, (20 + label, 24))):
            Image.fromarray(image.transpose(1, 2, 0)).resize((24 + number, 20)).save(folder / name / f"{number}.png")
    return folder


def save_exported(path: Path, seed: int = 0) -> Path:
    """The tiny encoder as a file of torch.export."""
    path.write_bytes(_export(seed))
    return path


@cache
def _export(seed: int) -> bytes:
    plain = nn.Sequential(TinyEncoder(seed).convolution, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    batch, content = torch.export.Dim("batch", min=1), BytesIO()
    program = torch.export.export(plain, (torch.zeros(2, 3, SIZE, SIZE),), dynamic_shapes=({0: batch},))
    torch.export.save(program, content)
    return content.getvalue()


class LetterCounts:
    """The features of a text that were made from its letters: how often each of six occurs. It counts its calls."""

    calls = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return torch.stack([(tokens == ord(letter)).float().sum(1) for letter in "aeiorw"], 1)


def tiny_texts() -> Encoder:
    """An encoder of texts."""
    takes = TextInput(100, lambda text: [ord(character) for character in text[:100]])
    return Encoder("letters", "1", "no weights", FEATURES, LetterCounts(), takes)


def sentences(labels: list[str], count: int = 8) -> tuple[list[str], Array]:
    """Texts of different lengths whose letters tell their label apart."""
    words = {"weather": "rain wind", "food": "aioli", "sea": "eel"}
    made = [f"{words[label]} {'re' * (number % 3)} {number}" for label in labels for number in range(count)]
    return made, np.repeat(labels, count)


def save_onnx(path: Path, seed: int = 0) -> Path:
    """The tiny encoder as an ONNX file, made by hand."""
    onnx = pytest.importorskip("onnx", reason="it needs the extra 'export'")
    pytest.importorskip("onnxruntime", reason="it needs the extra 'export'")
    helper, convolution = onnx.helper, TinyEncoder(seed).convolution
    assert convolution.bias is not None
    arrays = {"w": convolution.weight.detach().numpy(), "b": convolution.bias.detach().numpy()}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    ends = (
        [helper.make_tensor_value_info("x", kind, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "tiny", *ends, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def timm_with(network: nn.Module | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for timm, with the functions and keys that are used; without a network it cannot download weights."""

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        if name != "tiny" or (pretrained and network is None):
            raise RuntimeError(f"Unknown model ({name})")
        assert num_classes == 0
        return network if pretrained and network is not None else TinyEncoder(seed=7)

    config: dict[str, Any] = {"input_size": (3, SIZE, SIZE), "mean": (0.1,) * 3, "std": (0.2,) * 3}
    config |= {"interpolation": "bilinear", "crop_pct": 0.9}
    library: Any = types.ModuleType("timm")
    library.create_model = create_model
    library.data = types.SimpleNamespace(resolve_data_config=lambda given, model: config)
    monkeypatch.setitem(sys.modules, "timm", library)


def torchvision_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torchvision likewise; without its default weights, a network has others."""
    transforms = types.SimpleNamespace(
        crop_size=[SIZE], resize_size=[20], mean=[0.1] * 3, std=[0.2] * 3, interpolation="InterpolationMode.BILINEAR"
    )
    weights = types.SimpleNamespace(DEFAULT=types.SimpleNamespace(transforms=lambda: transforms))

    def get_model(name: str, weights: object) -> nn.Module:
        network = nn.Sequential()
        network.add_module("body", TinyEncoder(seed=0 if weights else 7))
        network.add_module("fc", nn.Linear(FEATURES, 1000))
        return network

    library: Any = types.ModuleType("torchvision.models")
    library.get_model_weights = lambda name: {"tiny": weights}[name]
    library.get_model = get_model
    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", library)
