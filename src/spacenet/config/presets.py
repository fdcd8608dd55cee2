"""Settings for each stream and method: the paper's, or where a search on held-out training data found better, those.

What only one method needs stands in the method's file and is laid over these. docs/settings.md says which differ from
the paper's text, and why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spacenet.config.run import RunConfig, from_mapping, merge
from spacenet.errors import SettingsError
from spacenet.methods import get_method
from spacenet.methods.base import ANY
from spacenet.nets import MLP

Preset = Mapping[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """The settings of one experiment of the paper."""

    base: Preset
    """For every method: the net, the data, the training of the dense ones."""
    space: Preset = field(default_factory=dict)
    """What a task may use of the network, for the sparse methods."""
    sparse_training: Preset = field(default_factory=dict)
    """Laid over the base for spacenet and static-sparse, alike: their difference is what rewiring makes."""
    rehearsal_training: Preset = field(default_factory=dict)
    density: Preset = field(default_factory=lambda: {"data": {"centering": 0.0}})
    """Laid over spacenet's for spacenet-density. Edges are seen best in images as they are."""
    rewire_fraction: float = 0.2
    rehearsal_rewire_fraction: float = 0.2

    def with_net(self, net: str) -> "Benchmark":
        """The same for another network than the paper's: nobody has searched for its space, so it is a guess."""
        if net == self.base.get("net", {}).get("net", MLP):
            return self
        return replace(self, base={**self.base, "net": {"net": net}}, space=_ANY, density={})

    def settings(self, method: str) -> dict[str, Any]:
        """The settings of a method."""
        adaptive = {**self.space, "rewire_fraction": self.rewire_fraction}
        rehearsal = {**self.space, "rewire_fraction": self.rehearsal_rewire_fraction}
        of_methods: dict[str, Preset] = {
            "spacenet": {"options": adaptive, "training": self.sparse_training},
            "spacenet-density": merge({"options": adaptive, "training": self.sparse_training}, self.density),
            "static-sparse": {"options": self.space, "training": self.sparse_training},
            "spacenet-rehearsal": {"options": rehearsal, "training": self.rehearsal_training},
        }
        return merge(self.base, of_methods.get(method, {}))


_ANY = {"unused_first": True}  # sizes follow from the network and the tasks to be expected
_MLP_SPACE = {"selected": [80], "reserved": [40], "connections": [10_000, 1_640, 80], "phantom_classes": 8}
_SMALL_CNN_10_100 = {"selected": [0], "reserved": [2, 2, 5, 6, 30], "connections": [0.12], "phantom_classes": 0}
_SMALL_CNN_ICIFAR = {
    "selected": [0, 0, 0, 0, 150],
    "reserved": [2, 2, 3, 4, 80],
    "unused_first": True,
    "connections": [0.15],
    "phantom_classes": 0,
}
_WRN = {"selected": [0, 40, 60, 120], "reserved": [0, 16, 24, 60], "connections": [0.02], "phantom_classes": 0}
# For spacenet-density, whose features are those of the first task: it gets more of the space and is learned longer,
# the others for fewer epochs, so that the whole takes less than one and a half times spacenet's time.
_FEATURES = {"components": 1, "directions": 20, "shrinkage": 0.75}
_DENSITY_SMALL_CNN = {
    "options": _FEATURES
    | {
        "first_selected": [0, 0, 0, 0, 300],
        "first_connections": [0.4],
        "connections": [0.08, 0.08, 0.08, 0.08, 0.08, 0.15],
    },
    "training": {"first_epochs": 60, "epochs": 15, "schedule": "cosine"},
}
_DENSITY_10_100 = merge(
    _DENSITY_SMALL_CNN,
    {"options": {"connections": [0.06, 0.06, 0.06, 0.06, 0.06, 0.12]}, "training": {"first_epochs": 25}},
)
_DENSITY_WRN = {
    "options": _FEATURES | {"first_selected": [0, 80, 120, 240], "first_connections": [0.06], "rotations": "first"},
    "training": {"first_epochs": 30, "epochs": 15, "schedule": "cosine"},
}
_EXPANDED = {"connections": [0.12, 0.165, 0.12, 0.12, 0.12, 0.12], "expand": "6:conv2=8,conv3=8"}
_CIFAR_TRAINING = {"epochs": 20, "batch_size": 64, "learning_rate": 0.1, "augment": "crop-flip"}
_SMALL_CNN = {"net": {"net": "small-cnn"}, "data": {"centering": 0.0}, "training": _CIFAR_TRAINING}
_WIDE_RESNET = {
    "net": {"net": "wrn-28-10"},
    "data": {"centering": 0.0},
    "training": {
        **_CIFAR_TRAINING,
        "batch_size": 128,
        "learning_rate": 0.04,
        "momentum": 0.9,
        "precision": "bf16",
    },
}

BENCHMARKS: dict[str, dict[str, Benchmark]] = {
    # A guess for data never seen.
    "npz": {
        "mlp": Benchmark(
            {"data": {"centering": 0.7}, "training": {"epochs": 20, "batch_size": 32, "learning_rate": 0.05}},
            space=_ANY,
            sparse_training={"learning_rate": 0.02},
        )
    },
    "split-digits": {
        "mlp": Benchmark(
            {"net": {"hidden": [200, 200]}, "training": {"epochs": 20, "batch_size": 16, "learning_rate": 0.05}},
            space={"selected": [40], "reserved": [20], "connections": [1_200, 600, 60], "phantom_classes": 8},
            sparse_training={"learning_rate": 0.02},
            rewire_fraction=0.5,
        )
    },
    "split-mnist": {
        "mlp": Benchmark(
            {
                "net": {"hidden": [400, 400]},
                "data": {"centering": 0.7},
                "training": {"epochs": 4, "batch_size": 128, "learning_rate": 0.1},
            },
            space=_MLP_SPACE,
            sparse_training={"learning_rate": 0.02},
            rehearsal_training={"epochs": 10},
            rewire_fraction=0.5,
        )
    },
    "split-fashion-mnist": {
        "mlp": Benchmark(
            {
                "net": {"hidden": [400, 400]},
                "data": {"centering": 0.5},
                "training": {"epochs": 20, "batch_size": 128, "learning_rate": 0.1},
            },
            space=_MLP_SPACE | {"selected": [80, 60]},
            sparse_training={"learning_rate": 0.005, "weight_decay": 0.05},
            rewire_fraction=0.5,
        )
    },
    "split-cifar-10": {
        "small-cnn": Benchmark(_SMALL_CNN, _SMALL_CNN_10_100, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN)
    },
    "icifar-100": {
        "small-cnn": Benchmark(_SMALL_CNN, _SMALL_CNN_ICIFAR, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN),
        "wrn-28-10": Benchmark(_WIDE_RESNET, _WRN, rewire_fraction=0.3, density=_DENSITY_WRN),
    },
    "cifar-10-100": {
        "small-cnn": Benchmark(_SMALL_CNN, _SMALL_CNN_10_100, rewire_fraction=0.3, density=_DENSITY_10_100),
        "expanded": Benchmark(_SMALL_CNN, _SMALL_CNN_10_100 | _EXPANDED, rewire_fraction=0.3),
    },
}
"""For each stream its experiments by name; the first is the default."""


def preset(stream: str, method: str, *over: Preset, preset_name: str | None = None) -> RunConfig:
    """The settings for a method on a stream, with others laid over them (a TOML file's, say)."""
    presets = BENCHMARKS.get(stream, {"mlp": Benchmark({})})
    if preset_name is not None and preset_name not in presets:
        raise SettingsError(f"preset: {stream} has no {preset_name!r}; it has {', '.join(presets)}")
    chosen = presets[preset_name or next(iter(presets))]
    net = merge(*over).get("net", {}).get("net")
    if net is not None:
        chosen = chosen.with_net(net)
    own = get_method(method).presets
    layers = (chosen.settings(method), own.get(ANY, {}), own.get(stream, {}), *over)
    return from_mapping(merge(*layers, {"stream": stream, "method": method}))
