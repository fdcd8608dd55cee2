"""Small finished runs on images of four by four pixels, and pictures that are really drawn."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.experiments.run import Run, create_folder
from spacenet.report.plots.plot import Plot
from spacenet.report.run_data import RunFacts, load_run
from tests.experiments.support import config


def run_facts(folder: Path, method: str = "spacenet", shape: tuple[int, ...] = (4, 4), **over: Any) -> RunFacts:
    """Three tasks of two classes; `over` are sections of the config."""
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(6, *shape)), np.repeat(np.arange(6), 20)
    x_train, x_test = ((centres[y] + rng.normal(size=(120, *shape)) * 0.3).astype(np.float32) for _ in range(2))
    np.savez(folder / "images.npz", x_train=x_train, y_train=y, x_test=x_test, y_test=y)
    create_folder(config(folder, method, data={"npz": str(folder / "images.npz")}, **over), folder / "run")
    Run(folder / "run").execute()
    return load_run(folder / "run")


def words_in(plot: Plot) -> str:
    """Everything that is written in the picture."""
    return "\n".join("".join(each.itertext()) for each in ET.fromstring(plot.svg()).iter() if "text" in each.tag)
