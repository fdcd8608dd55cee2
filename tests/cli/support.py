"""Settings for runs that take a moment, and what finished runs left."""

import json
from pathlib import Path
from typing import Any

from spacenet.experiments.run import METRICS, MODEL

SMALL = ["--hidden", "30", "30", "--selected", "10", "--reserved", "5", "--connections", "40", "40", "16"]
SMALL += ["--epochs", "3", "--batch-size", "10", "--learning-rate", "0.1"]
QUICK = "[training]\nepochs = 1\nbatch_size = 30\n[net]\nhidden = [20]\n[methods.spacenet.method]\n"
QUICK += "selected = [10]\nreserved = [3]\nconnections = [40, 10]\n"


def outcome(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The metrics of a finished run without times, and the bytes of its model."""
    return _timeless(json.loads((folder / METRICS).read_text())), (folder / MODEL).read_bytes()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not key.endswith("seconds")}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
