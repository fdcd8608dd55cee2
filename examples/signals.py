"""Speakers that come three at a time, told apart by a vowel: a network of your own, on signals.

python examples/signals.py [--epochs 60] [--seeds 3] [--methods NAME ...]

The data are the Japanese Vowels (Kudo, Toyama and Shimbo, 1999; UCI Machine Learning Repository, CC BY 4.0) as they
come with sktime (BSD-3-Clause): 12 coefficients at 7 to 29 points in time, nine speakers, 270 series to learn from and
370 to test on. It needs `pip install spacenet-cl sktime`.
"""

import argparse
import logging
from typing import Any

import numpy as np
from sktime.datasets import load_japanese_vowels
from torch import nn

import spacenet
from spacenet.errors import SpacenetError

METHODS = ["naive", "ewc", "spacenet", "spacenet-density", "joint"]
LENGTH = 29


def network() -> nn.Module:
    """Two convolutions over time, and the mean over time."""
    return nn.Sequential(
        nn.Conv1d(12, 64, 5, padding=2),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(64, 96, 3, padding=1),
        nn.BatchNorm1d(96),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(96, 9),
    )


def load(split: str) -> tuple[Any, Any]:
    """Series as (samples, 12, 29), with zeros after their end, and who speaks."""
    series, speakers = load_japanese_vowels(split=split)
    x = np.zeros((len(series), series.shape[1], LENGTH), np.float32)
    for row, sample in enumerate(series.to_numpy()):
        for channel, values in enumerate(sample):
            x[row, channel, : len(values)] = values
    return x, speakers


def main() -> None:
    """Show the network's layers, compare methods, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    options = parser.parse_args()
    stream = spacenet.Stream.from_arrays(*load("train"), *load("test"), classes_per_task=3, name="japanese-vowels")
    print(stream)
    print(spacenet.describe(network(), stream))
    print(spacenet.compare(stream, options.methods, net=network(), epochs=options.epochs, seeds=options.seeds))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        main()
    except SpacenetError as error:
        raise SystemExit(f"signals: {error}") from None
