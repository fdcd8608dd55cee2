"""Whether an exported model with an encoder answers as in Python: `python -m benchmarks.exported`.

A model learns photos that the program draws, and is exported as ONNX from pixels to probabilities. Other photos, and as
many images of random blocks, go through onnxruntime and through the model; the largest difference of a probability and
the number of different labels are printed, and what a file of this model holds.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.command import load, measured, read_options
from benchmarks.encoders import draw_photos
from spacenet import SpaceNetClassifier
from spacenet.data.features import encode_samples, image_format_of
from spacenet.data.images import decode_images
from spacenet.encoders.efficientnet import LITE0
from spacenet.encoders.loading import load_encoder
from spacenet.model.export import FORMATS, export_model
from spacenet.model.exported_part import BLOCKS, random_image
from spacenet.report.tables import Table

BATCH = 50


@dataclass(frozen=True)
class Options:
    """What is compared, and on how much."""

    encoder: str = LITE0.name
    images: int = 1000
    learned: int = 100
    """Photos that the model learns, in five classes."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Compare and print; returns the raw figures."""
    half = options.images // 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = sorted(draw_photos(folder / "photos", options.learned + half).rglob("*.jpg"), key=lambda p: int(p.stem))
        x, y = prepare(options.encoder, files[: options.learned]), [int(p.parent.name[-1]) for p in files]
        classifier = SpaceNetClassifier(encoder=options.encoder).fit(x, y[: options.learned])
        model, path = classifier.model_, folder / "model.onnx"
        written = export_model(model, path, "onnx")
        photos = prepare(options.encoder, files[options.learned :])
        predict, _ = FORMATS["onnx"].load(path)
    rng, size = np.random.default_rng(1), photos.shape[-1]
    blocks = [random_image(rng, size, BLOCKS[n % len(BLOCKS)]) for n in range(options.images - half)]
    images = np.concatenate([photos, np.stack(blocks)])
    assert model.encoder is not None
    expected = model.predict_proba(encode_samples(model.encoder, images, keep=False))
    found = np.concatenate(
        [predict(images[first : first + BATCH])["probabilities"] for first in range(0, len(images), BATCH)]
    )
    facts = {
        "images": len(images),
        "largest_difference": float(np.abs(found - expected).max()),
        "different_labels": int((found.argmax(1) != expected.argmax(1)).sum()),
        "labels": np.bincount(expected.argmax(1), minlength=5).tolist(),
        "least_certain": float(expected.max(1).min()),
        "bytes": written.bytes,
    }
    console.print(Table(f"{options.encoder}: ONNX beside Python", ["", ""], [[k, str(v)] for k, v in facts.items()]))
    return {**facts, "load": load()}


def prepare(name: str, files: list[Path]) -> Any:
    """The images in files as bytes of the encoder's size."""
    return decode_images(files, image_format_of(load_encoder(name)))[1]


def main(arguments: list[str] | None = None) -> int:
    return measured("exported", read_options(Options, "exported", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
