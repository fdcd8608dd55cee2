"""Small runs in a folder."""

import json
from pathlib import Path
from typing import Any

from spacenet.config.presets import preset
from spacenet.config.run import RunConfig
from spacenet.experiments.run import METRICS, MODEL
from tests.support import clouds_file

SPACE = {"selected": [10], "reserved": [5], "connections": [40, 40, 16]}


def config(folder: Path, method: str = "spacenet", seed: int = 0, **over: dict[str, Any]) -> RunConfig:
    """Three tasks of two classes, learned in a moment."""
    settings: dict[str, Any] = {
        "seed": seed,
        "data": {"npz": str(clouds_file(folder))},
        "net": {"hidden": [30, 30]},
        "training": {"epochs": 3, "batch_size": 10, "learning_rate": 0.1, "momentum": 0.5},
    }
    if "space" in method or "sparse" in method:
        settings["options"] = SPACE
    return preset("npz", method, settings, over)


def outcome(folder: Path) -> tuple[dict[str, Any], bytes]:
    """What a finished run says and the bytes of its model; times are left out."""
    return _timeless(json.loads((folder / METRICS).read_text())), (folder / MODEL).read_bytes()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key != "seconds"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
