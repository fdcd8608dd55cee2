"""A data set small enough to learn in a moment: classes are Gaussian clouds of eight features."""

from pathlib import Path

import numpy as np

from spacenet.data.dataset import Dataset


def clouds(classes: int = 6, per_class: int = 30, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, 8)) * 2
    y = np.repeat(np.arange(classes), per_class)
    x_train, x_test = ((centres[y] + rng.normal(size=(len(y), 8)) * 0.7).astype(np.float32) for _ in range(2))
    return Dataset("clouds", x_train, y, x_test, y.copy())


def clouds_file(folder: Path, **options: int) -> Path:
    data = clouds(**options)
    path = folder / "clouds.npz"
    np.savez(path, x_train=data.x_train, y_train=data.y_train, x_test=data.x_test, y_test=data.y_test)
    return path
