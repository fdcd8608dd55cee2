"""Small runs, in a folder or in memory."""

import json
from pathlib import Path
from typing import Any

from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.config.stream import CUSTOM
from spacenet.experiments.jobs import Job
from spacenet.experiments.run import METRICS, MODEL, RunData
from spacenet.model.file import to_bytes
from tests.methods.support import LIGHT
from tests.support import clouds_file

SPACE = {"selected": [10], "reserved": [5], "connections": [40, 40, 16]}
TIMES = ("seconds", "training_seconds")


def config(folder: Path, method: str = "spacenet", seed: int = 0, /, **over: dict[str, Any]) -> RunConfig:
    """Three tasks of two classes, learned in a moment."""
    settings: dict[str, Any] = {
        "seed": seed,
        "stream": {"data": str(clouds_file(folder))},
        "net": {"hidden": [30, 30]},
        "training": {"epochs": 3, "batch_size": 10, "learning_rate": 0.1, "momentum": 0.5},
    }
    if "space" in method or "sparse" in method:
        settings["method"] = SPACE
    if method in LIGHT:
        settings["method"] = LIGHT[method]
    return preset_config(CUSTOM, method, settings, over)


def seed_jobs(settings: RunConfig, seeds: range, folder: Path | None = None) -> list[Job]:
    """The same run with several seeds."""
    return [Job(settings.with_seed(seed), folder=folder / f"seed-{seed}" if folder else None) for seed in seeds]


def outcome(folder: Path) -> tuple[dict[str, Any], bytes]:
    """What a finished run says and the bytes of its model; times are left out."""
    return timeless(json.loads((folder / METRICS).read_text())), (folder / MODEL).read_bytes()


def in_memory(data: RunData) -> tuple[dict[str, Any], bytes]:
    """The same of a run's data."""
    return timeless(data.metrics), to_bytes(data.model) if data.model else b""


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value
