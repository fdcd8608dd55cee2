"""What an encoder costs on this machine: `python -m benchmarks.encoders`, from the repository's root.

Images per second beside plain PyTorch on the same images, both on all processors and in turn; the time from a folder of
photos to a model, with and without features that are kept from before; and the time of a label for one photo beside
that of `import torch`, each in a fresh process. The photos are drawn by the program. Also how many
texts and sounds per second the encoders of these take.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.command import load, measured, read_options
from benchmarks.startup import TORCH, spacenet_command, timed
from spacenet.data.fetch import CACHE_VARIABLE
from spacenet.encoders.efficientnet import LITE0
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import Array
from spacenet.encoders.loading import load_encoder
from spacenet.encoders.sounds import SPEECH
from spacenet.encoders.texts import MINILM
from spacenet.report.tables import Table

PHOTO = (240, 320)
"""Height and width of the photos."""


@dataclass(frozen=True)
class Options:
    """What is measured, and on how much."""

    encoder: str = LITE0.name
    photos: int = 500
    """In five classes."""
    images: int = 64
    """That are encoded at a time."""
    repeats: int = 3
    """How often each is measured; the fastest counts."""
    json: Path | None = None
    """Write the raw figures to this file."""


def draw_photos(folder: Path, count: int, classes: int = 5) -> Path:
    """JPEG files in one sub-folder per class, each class with a color of its own under noise."""
    from PIL import Image

    rng = np.random.default_rng(0)
    colors = rng.integers(40, 216, (classes, 3))
    for number in range(count):
        place = folder / f"class-{number % classes}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = colors[number % classes] + rng.integers(-40, 41, (*PHOTO, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number}.jpg")
    return folder


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print; returns the raw figures in seconds."""
    seconds: dict[str, list[float]] = {}

    def note(name: str, act: Callable[[], float]) -> None:
        seconds.setdefault(name, []).append(act())

    for _ in range(options.repeats):
        for name, act in (_encodings(options) | _other_senses(options)).items():
            note(name, act)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        photos = draw_photos(folder / "photos", options.photos)
        environment = {CACHE_VARIABLE: str(folder / "cache")}
        fit = ["fit", str(photos), "--encoder", options.encoder, "--quiet", "--out"]
        note("fit", lambda: timed(spacenet_command(*fit, str(folder / "first.safetensors")), environment))
        note("fit again", lambda: timed(spacenet_command(*fit, str(folder / "again.safetensors")), environment))
        photo = str(next(photos.rglob("*.jpg")))
        for number in range(options.repeats):
            note(TORCH, lambda: timed([sys.executable, "-c", TORCH]))
            own = {CACHE_VARIABLE: str(folder / f"empty-{number}")}
            predict = spacenet_command("predict", str(folder / "first.safetensors"), photo)
            note("predict", lambda predict=predict, own=own: timed(predict, own))  # type: ignore[misc]
    best = {name: min(found) for name, found in seconds.items()}
    console.print(_table(options, best))
    return {"seconds": seconds, "load": load(), "threads": torch.get_num_threads()}


def _encodings(options: Options) -> dict[str, Callable[[], float]]:
    """Encoding the same images by an encoder, and by its network in one batch."""
    encoder = load_encoder(options.encoder)
    rng = np.random.default_rng(0)
    prepared = rng.integers(0, 256, (options.images, *encoder.shape), dtype=np.uint8)
    assert encoder.images is not None
    images = encoder.images

    def plain() -> object:
        with torch.inference_mode():
            return encoder.network(images.normalize(torch.from_numpy(prepared)))

    return {"encoder": lambda: _time_of(lambda: encoder.encode(prepared)), "plain": lambda: _time_of(plain)}


def _other_senses(options: Options) -> dict[str, Callable[[], float]]:
    """Encoding texts of ten words and sounds of a second and a half."""
    rng = np.random.default_rng(0)
    words = ["the", "a", "of", "in", "is", "network", "sample", "class", "learns", "gains", "new", "old"]
    texts = [" ".join(rng.choice(words, 10)) for _ in range(options.images)]
    sounds = rng.uniform(-0.5, 0.5, (options.images, 24_000))
    found: dict[str, Callable[[], float]] = {}
    for name, x in ((MINILM, np.array(texts)), (SPEECH, sounds)):
        encoder = load_encoder(name)
        found[name] = partial(_time_of, partial(_encode, encoder, x))
    return found


def _encode(encoder: Encoder, x: Array) -> Array:
    """The features of raw samples."""
    return encoder.encode(encoder.prepare(x))


def _time_of(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _table(options: Options, best: dict[str, float]) -> Table:
    each = {name: options.images / best[name] for name in ("encoder", "plain", MINILM, SPEECH)}
    rows = [
        ["images per second", f"{each['encoder']:.1f}", f"{each['encoder'] / each['plain']:.2f} × PyTorch", "0.9"],
        [f"model from {options.photos} photos", f"{best['fit']:.1f} s", "", ""],
        ["the same, features kept from before", f"{best['fit again']:.1f} s", "", ""],
        ["label of one photo", f"{best['predict']:.2f} s", f"{best['predict'] / best[TORCH]:.2f} × {TORCH}", "1.5"],
        [f"texts of ten words per second, {MINILM}", f"{each[MINILM]:.1f}", "", ""],
        [f"sounds of 1.5 s per second, {SPEECH}", f"{each[SPEECH]:.1f}", "", ""],
    ]
    return Table(options.encoder, ["", "fastest", "ratio", "wanted"], rows)


def main(arguments: list[str] | None = None) -> int:
    return measured("encoders", read_options(Options, "encoders", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
