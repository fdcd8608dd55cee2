"""Small runs that were really learned, for what made-up ones cannot show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.config.presets import preset_config
from spacenet.data.stream import Stream
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.run import Run, RunData


def learn(
    name: str = "spacenet",
    shape: tuple[int, ...] = (4, 4),
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    **over: Any,
) -> RunData:
    """Three tasks of two classes; `over` are sections of the configuration."""
    rng = np.random.default_rng(0)
    centers, y = rng.normal(size=(6, *shape)), np.repeat(np.arange(6), 20)
    x, x_test = ((centers[y] + rng.normal(size=(120, *shape)) * 0.3).astype(np.float32) for _ in range(2))
    stream = Stream.from_arrays(x, y, x_test, y, classes_per_task=2)
    settings: dict[str, Any] = {
        "net": {"hidden": [30, 30]},
        "training": {"epochs": 3, "batch_size": 10, "learning_rate": 0.1, "momentum": 0.5},
    }
    if "space" in name or "sparse" in name:
        settings["method"] = {"selected": [10], "reserved": [5], "connections": [40, 40, 16]}
    return Run(preset_config(stream.name, name, settings, over), stream, folder, callbacks).execute()


@pytest.fixture(scope="session")
def learned_run() -> RunData:
    return learn()


@pytest.fixture(scope="session")
def learned_static_run() -> RunData:
    return learn("static-sparse")
