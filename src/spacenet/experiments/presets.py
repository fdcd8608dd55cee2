"""Settings for each stream: the paper's, and where a search on held-out training data found better, those.

docs/settings.md says which differ from the paper's text and why.
"""

from collections.abc import Mapping
from typing import Any

from spacenet.experiments.config import RunConfig, from_mapping, merged

Preset = Mapping[str, Any]

_PAPER_SPACE = {"selected": [80], "reserved": [40], "connections": [10_000, 1_640, 80], "silent_outputs": 8}

_BY_STREAM: dict[str, Preset] = {
    "split-digits": {
        "net": {"hidden": [200, 200]},
        "training": {"epochs": 20, "batch_size": 16, "learning_rate": 0.02},
    },
    "split-mnist": {
        "net": {"hidden": [400, 400]},
        "data": {"centering": 0.7},
        "training": {"epochs": 4, "batch_size": 128, "learning_rate": 0.02},
    },
    "split-fashion-mnist": {
        "net": {"hidden": [400, 400]},
        "training": {"epochs": 20, "batch_size": 128, "learning_rate": 0.005, "weight_decay": 0.01},
    },
}

_DIGITS_SPACE = {"selected": [40], "reserved": [20], "connections": [800, 400, 40]}
_BY_METHOD: dict[str, dict[str, Preset]] = {
    "split-digits": {name: {"options": _DIGITS_SPACE} for name in ("spacenet", "static-sparse", "spacenet-rehearsal")},
    "split-mnist": {
        "spacenet": {"options": _PAPER_SPACE | {"rewire_fraction": 0.2}},
        "static-sparse": {"options": _PAPER_SPACE},
        "spacenet-rehearsal": {
            "options": _PAPER_SPACE | {"rewire_fraction": 0.2},
            "training": {"epochs": 10, "learning_rate": 0.05},
        },
    },
    "split-fashion-mnist": {
        "spacenet": {"options": _PAPER_SPACE | {"rewire_fraction": 0.2}},
        "static-sparse": {"options": _PAPER_SPACE},
        "spacenet-rehearsal": {"options": _PAPER_SPACE | {"rewire_fraction": 0.2}, "training": {"learning_rate": 0.05}},
    },
}


def preset(stream: str, method: str, *over: Preset) -> RunConfig:
    """The settings for a method on a stream, with others laid over them (a TOML file's, say)."""
    names = {"stream": stream, "method": method}
    return from_mapping(merged(_BY_STREAM.get(stream, {}), _BY_METHOD.get(stream, {}).get(method, {}), *over, names))
