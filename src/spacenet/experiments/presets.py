"""Settings for each stream and method: the paper's, or where a search on held-out training data found better, those.

docs/settings.md says which differ from the paper's text, and why.
"""

from collections.abc import Mapping
from typing import Any

from spacenet.experiments.config import RunConfig, from_mapping, merged

Preset = Mapping[str, Any]

_PAPER_SPACE = {"selected": [80], "reserved": [40], "connections": [10_000, 1_640, 80], "silent_outputs": 8}
_DIGITS_SPACE = {"selected": [40], "reserved": [20], "connections": [1_200, 600, 60], "silent_outputs": 8}
_FASHION_SPACE = _PAPER_SPACE | {"selected": [80, 60]}

_STREAMS: dict[str, Preset] = {
    "npz": {"training": {"epochs": 20, "batch_size": 32, "learning_rate": 0.05}},  # a guess for data never seen
    "split-digits": {
        "net": {"hidden": [200, 200]},
        "training": {"epochs": 20, "batch_size": 16, "learning_rate": 0.05},
    },
    "split-mnist": {
        "net": {"hidden": [400, 400]},
        "data": {"centering": 0.7},
        "training": {"epochs": 4, "batch_size": 128, "learning_rate": 0.1},
    },
    "split-fashion-mnist": {
        "net": {"hidden": [400, 400]},
        "data": {"centering": 0.5},
        "training": {"epochs": 20, "batch_size": 128, "learning_rate": 0.1},
    },
}

# static-sparse is there to show what rewiring gains, so it has the very settings of spacenet.
_SPARSE_TRAINING: dict[str, Preset] = {
    "split-digits": {"learning_rate": 0.02},
    "split-mnist": {"learning_rate": 0.02},
    "split-fashion-mnist": {"learning_rate": 0.005, "weight_decay": 0.05},
}
_REHEARSAL_TRAINING: dict[str, Preset] = {
    "split-digits": {},
    "split-mnist": {"epochs": 10},
    "split-fashion-mnist": {},
}


def _methods(stream: str, space: Preset) -> dict[str, Preset]:
    return {
        "spacenet": {"options": {**space, "rewire_fraction": 0.5}, "training": _SPARSE_TRAINING[stream]},
        "static-sparse": {"options": space, "training": _SPARSE_TRAINING[stream]},
        "spacenet-rehearsal": {"options": {**space, "rewire_fraction": 0.2}, "training": _REHEARSAL_TRAINING[stream]},
    }


_METHODS: dict[str, dict[str, Preset]] = {
    "split-digits": _methods("split-digits", _DIGITS_SPACE),
    "split-mnist": _methods("split-mnist", _PAPER_SPACE),
    "split-fashion-mnist": _methods("split-fashion-mnist", _FASHION_SPACE),
}


def preset(stream: str, method: str, *over: Preset) -> RunConfig:
    """The settings for a method on a stream, with others laid over them (a TOML file's, say)."""
    names = {"stream": stream, "method": method}
    return from_mapping(merged(_STREAMS.get(stream, {}), _METHODS.get(stream, {}).get(method, {}), *over, names))
