"""The data sets of `python -m benchmarks.own_data`: those that the defaults for data of one's own were chosen on, and
others that were set down before anything was measured on them, and are measured with the final defaults only."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_gaussian_quantiles,
    make_moons,
)

Array = np.ndarray[Any, Any]


def _digit_images() -> tuple[Array, Array]:
    data = load_digits()
    return data.images, data.target


def _letters() -> tuple[Array, Array]:
    """As many classes and features as the letters of UCI, with scales from thousandths to thousands."""
    options: dict[str, Any] = {"n_informative": 12, "n_redundant": 2, "n_clusters_per_class": 1, "class_sep": 2.0}
    x, y = make_classification(6000, 16, n_classes=26, random_state=0, **options)
    return (x + 5) * np.logspace(-3, 3, 16), y


def _clusters() -> tuple[Array, Array]:
    """Four classes of two clusters each."""
    x, y = make_classification(2000, 10, n_informative=6, n_classes=4, class_sep=1.5, random_state=1)
    return x * np.logspace(-2, 2, 10), y


def _series(name: str) -> tuple[Array, Array]:
    """Series of sktime as rows, with zeros after the end of shorter ones."""
    import sktime.datasets

    series, y = getattr(sktime.datasets, f"load_{name}")(return_X_y=True, return_type="nested_univ")
    length = max(len(cell) for column in series.columns for cell in series[column])
    x = np.zeros((len(series), series.shape[1], length))
    for row, cells in enumerate(series.to_numpy()):
        for channel, values in enumerate(cells):
            x[row, channel, : len(values)] = values
    return x.reshape(len(x), -1), np.asarray(y).astype(str)


TUNED: dict[str, Callable[[], tuple[Array, Array]]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits, as a table": lambda: load_digits(return_X_y=True),
    "digits, as images": _digit_images,
    "synthetic letters": _letters,
    "synthetic clusters": _clusters,
    "GunPoint": lambda: _series("gunpoint"),
    "ItalyPowerDemand": lambda: _series("italy_power_demand"),
    "ArrowHead": lambda: _series("arrow_head"),
    "OSULeaf": lambda: _series("osuleaf"),
    "BasicMotions": lambda: _series("basic_motions"),
    "JapaneseVowels": lambda: _series("japanese_vowels"),
}


def _thirds(x: Array, target: Array) -> tuple[Array, Array]:
    """Classes of a number to predict: its lower, middle and upper third."""
    numbers = target.astype(np.float64)
    return x, np.searchsorted(np.quantile(numbers, (1 / 3, 2 / 3)), numbers)


def _redundant() -> tuple[Array, Array]:
    """Forty columns, most of them combinations of others or noise, on very different scales."""
    options: dict[str, Any] = {"n_informative": 8, "n_redundant": 20, "n_repeated": 4, "n_classes": 6}
    x, y = make_classification(1500, 40, n_clusters_per_class=1, class_sep=1.2, random_state=10, **options)
    return x * np.random.default_rng(10).permutation(np.logspace(-4, 4, 40)) + 100, y


def _shells() -> tuple[Array, Array]:
    """Classes around one mean, told apart by the distance from it."""
    x, y = make_gaussian_quantiles(n_samples=1500, n_features=8, n_classes=4, random_state=11)
    return x * np.logspace(-1, 2, 8), y


def _heavy_tails() -> tuple[Array, Array]:
    """Student's t with two degrees of freedom around the mean of each class."""
    rng = np.random.default_rng(12)
    y = rng.integers(0, 5, 1200)
    return (rng.standard_t(2, (1200, 12)) + 2.5 * rng.normal(size=(5, 12))[y]) * np.logspace(0, 3, 12), y


def _counts() -> tuple[Array, Array]:
    """Whole numbers, most of them small: how often each of 30 words occurs."""
    rng = np.random.default_rng(13)
    y = rng.integers(0, 6, 1200)
    return rng.poisson(rng.gamma(0.8, 2.0, (6, 30))[y]), y


def _mixed() -> tuple[Array, Array]:
    """Yes-or-no columns, categories as numbers, and log-normal amounts."""
    rng = np.random.default_rng(14)
    y = rng.integers(0, 4, 1000)
    flags = rng.random((1000, 8)) < rng.beta(0.7, 0.7, (4, 8))[y]
    categories = (rng.integers(0, 5, (4, 3))[y] + rng.integers(0, 3, (1000, 3))) % 5
    amounts = np.exp(rng.normal(size=(1000, 5)) + 1.5 * rng.normal(size=(4, 5))[y]) * np.logspace(0, 4, 5)
    return np.hstack([flags, categories, amounts]), y


def _moons() -> tuple[Array, Array]:
    """Two pairs of crescents, one beside the other, with six columns of noise."""
    rng = np.random.default_rng(15)
    x, y = make_moons(1200, noise=0.15, random_state=15)
    pair = rng.integers(0, 2, 1200)
    return np.hstack([x + np.array([4.0, 1.0]) * pair[:, None], rng.normal(size=(1200, 6))]), y + 2 * pair


HELD_OUT: dict[str, Callable[[], tuple[Array, Array]]] = {
    "diabetes, in thirds": lambda: _thirds(*load_diabetes(return_X_y=True, scaled=False)),
    "Tecator, fat in thirds": lambda: _thirds(*_series("tecator")),
    "ACSF1": lambda: _series("acsf1"),
    "PLAID": lambda: _series("plaid"),
    "redundant columns": _redundant,
    "shells": _shells,
    "heavy tails": _heavy_tails,
    "counts": _counts,
    "mixed columns": _mixed,
    "moons": _moons,
}
SETS = TUNED | HELD_OUT
