"""Presets: the settings of every method on every benchmark.

They are the paper's, or, where a search on held-out training data found better ones, those; docs/settings.md says which
differ from the paper's text, and why. `preset_config` puts the layers together: what a preset says for all methods,
what it says for one, what that method has elsewhere, and what the user gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spacenet.config.model import merge
from spacenet.config.run import RunConfig
from spacenet.config.stream import CUSTOM
from spacenet.errors import SettingsError
from spacenet.registry import unknown

Layer = Mapping[str, Any]
"""Nested settings: {"training": {"epochs": 4}, "method": {…}, …}."""
ANY = "any"


@dataclass(frozen=True)
class Preset:
    """The settings of one experiment."""

    base: Layer
    """For every method: the net, the preprocessing, the training of the dense ones."""
    space: Layer = field(default_factory=dict)
    """What a task may use of the network, for the sparse methods."""
    sparse_training: Layer = field(default_factory=dict)
    """Laid over the base for spacenet and static-sparse, alike: their difference is what rewiring makes."""
    rehearsal_training: Layer = field(default_factory=dict)
    density: Layer = field(default_factory=lambda: {"preprocessing": {"centering": 0.0}})
    """Laid over spacenet's for spacenet-density. Edges show best in images that are not centered."""
    rewire_fraction: float = 0.2
    rehearsal_rewire_fraction: float = 0.2

    @property
    def net(self) -> str:
        """The network that the preset was made for."""
        return str(self.base.get("net", {}).get("name", "mlp"))

    def with_net(self, net: str) -> "Preset":
        """The same for another network. Its budget was not searched for, so it follows from the size of the network."""
        if net == self.net:
            return self
        return replace(self, base={**self.base, "net": {"name": net}}, space=_ANY_NET, density={})

    def settings(self, method: str) -> dict[str, Any]:
        """The settings of a method."""
        adaptive = {**self.space, "rewire_fraction": self.rewire_fraction}
        rehearsal = {**self.space, "rewire_fraction": self.rehearsal_rewire_fraction}
        of_methods: dict[str, Layer] = {
            "spacenet": {"method": adaptive, "training": self.sparse_training},
            "spacenet-density": merge({"method": adaptive, "training": self.sparse_training}, self.density),
            "static-sparse": {"method": self.space, "training": self.sparse_training},
            "spacenet-rehearsal": {"method": rehearsal, "training": self.rehearsal_training},
        }
        return merge(self.base, of_methods.get(method, {}))


_ANY_NET = {"unused_first": True}  # sizes follow from the network and the tasks to be expected
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
    "method": _FEATURES
    | {
        "first_selected": [0, 0, 0, 0, 300],
        "first_connections": [0.4],
        "connections": [0.08, 0.08, 0.08, 0.08, 0.08, 0.15],
    },
    "training": {"first_epochs": 60, "epochs": 15, "schedule": "cosine"},
}
_DENSITY_10_100 = merge(
    _DENSITY_SMALL_CNN,
    {"method": {"connections": [0.06, 0.06, 0.06, 0.06, 0.06, 0.12]}, "training": {"first_epochs": 25}},
)
_DENSITY_WRN = {
    "method": _FEATURES | {"first_selected": [0, 80, 120, 240], "first_connections": [0.06], "rotations": "first"},
    "training": {"first_epochs": 30, "epochs": 15, "schedule": "cosine"},
}
_EXPANDED = {"connections": [0.12, 0.165, 0.12, 0.12, 0.12, 0.12], "expand": "6:conv2=8,conv3=8"}
_CIFAR_TRAINING = {"epochs": 20, "batch_size": 64, "learning_rate": 0.1, "augment": "crop-flip"}
_SMALL_CNN = {"net": {"name": "small-cnn"}, "preprocessing": {"centering": 0.0}, "training": _CIFAR_TRAINING}
_WIDE_RESNET = {
    "net": {"name": "wrn-28-10"},
    "preprocessing": {"centering": 0.0},
    "training": {
        **_CIFAR_TRAINING,
        "batch_size": 128,
        "learning_rate": 0.04,
        "momentum": 0.9,
        "precision": "bf16",
    },
}

PRESETS: dict[str, dict[str, Preset]] = {
    # A guess for data never seen.
    CUSTOM: {
        "mlp": Preset(
            {"preprocessing": {"centering": 0.7}, "training": {"epochs": 20, "batch_size": 32, "learning_rate": 0.05}},
            space=_ANY_NET,
            sparse_training={"learning_rate": 0.02},
        )
    },
    "split-digits": {
        "mlp": Preset(
            {"net": {"hidden": [200, 200]}, "training": {"epochs": 20, "batch_size": 16, "learning_rate": 0.05}},
            space={"selected": [40], "reserved": [20], "connections": [1_200, 600, 60], "phantom_classes": 8},
            sparse_training={"learning_rate": 0.02},
            rewire_fraction=0.5,
        )
    },
    "split-mnist": {
        "mlp": Preset(
            {
                "net": {"hidden": [400, 400]},
                "preprocessing": {"centering": 0.7},
                "training": {"epochs": 4, "batch_size": 128, "learning_rate": 0.1},
            },
            space=_MLP_SPACE,
            sparse_training={"learning_rate": 0.02},
            rehearsal_training={"epochs": 10},
            rewire_fraction=0.5,
        )
    },
    "split-fashion-mnist": {
        "mlp": Preset(
            {
                "net": {"hidden": [400, 400]},
                "preprocessing": {"centering": 0.5},
                "training": {"epochs": 20, "batch_size": 128, "learning_rate": 0.1},
            },
            space=_MLP_SPACE | {"selected": [80, 60]},
            sparse_training={"learning_rate": 0.005, "weight_decay": 0.05},
            rewire_fraction=0.5,
        )
    },
    "split-cifar-10": {
        "small-cnn": Preset(_SMALL_CNN, _SMALL_CNN_10_100, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN)
    },
    "icifar-100": {
        "small-cnn": Preset(_SMALL_CNN, _SMALL_CNN_ICIFAR, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN),
        "wrn-28-10": Preset(_WIDE_RESNET, _WRN, rewire_fraction=0.3, density=_DENSITY_WRN),
    },
    "cifar-10-100": {
        "small-cnn": Preset(_SMALL_CNN, _SMALL_CNN_10_100, rewire_fraction=0.3, density=_DENSITY_10_100),
        "expanded": Preset(_SMALL_CNN, _SMALL_CNN_10_100 | _EXPANDED, rewire_fraction=0.3),
    },
}
"""For each stream its presets by name; the first is the default."""

_ADAM = {"training": {"optimizer": "adam", "learning_rate": 0.001}}
_NOT_CENTERED = {"preprocessing": {"centering": 0.0}}  # edges show best in images that are not centered


def _epochs(count: int) -> Layer:
    return {"training": {"epochs": count}}


METHOD_PRESETS: dict[str, dict[str, Layer]] = {
    "ewc": {
        ANY: _ADAM,
        "split-mnist": {"method": {"strength": 1200.0}},
        "split-fashion-mnist": {"method": {"strength": 1200.0}, **_epochs(4)},
    },
    "si": {
        ANY: _ADAM,
        "split-mnist": {"method": {"strength": 600.0}},
        "split-fashion-mnist": {"method": {"strength": 600.0}, **_epochs(4)},
    },
    "mas": {ANY: _ADAM, "split-fashion-mnist": _epochs(4)},
    "lwf": {
        "split-mnist": {"method": {"strength": 8.0}, "training": {"learning_rate": 0.05}},
        "split-fashion-mnist": {"method": {"strength": 8.0}, "training": {"learning_rate": 0.01, "epochs": 1}},
    },
    "er": {"split-mnist": _epochs(6), "split-fashion-mnist": _epochs(6)},
    "dgr": {ANY: _ADAM, "split-mnist": _epochs(8), "split-fashion-mnist": _epochs(8)},
    "icarl": {
        ANY: {"training": {"momentum": 0.9, "weight_decay": 1e-5}},
        "split-mnist": {**_epochs(10), "method": {"temperature": 2.5}},
        "split-fashion-mnist": _epochs(6),
    },
    "den": {"split-fashion-mnist": _epochs(4)},
    "cwr": {"split-fashion-mnist": _epochs(4)},
    "ar1": {"split-fashion-mnist": _epochs(4)},
    "piggyback": {ANY: _ADAM},
    "gaussian": {ANY: _NOT_CENTERED},
    "slda": {ANY: _NOT_CENTERED},
}
"""What single methods have on all streams (`ANY`) or on one, laid over the stream's preset."""


def register_preset(method: str, settings: Layer, stream: str = ANY) -> None:
    """Let a method have these settings on a stream, by default on all of them.

    Examples
    --------
    >>> from spacenet.config.presets import register_preset
    >>> register_preset("my-method", {"training": {"epochs": 2}}, stream="split-digits")
    """
    METHOD_PRESETS.setdefault(method, {})[stream] = settings


def preset_names(stream: str) -> list[str]:
    """The presets of a stream, the default first."""
    return list(PRESETS.get(stream, PRESETS[CUSTOM]))


def preset_config(stream: str, method: str, *over: Layer, preset: str | None = None) -> RunConfig:
    """The configuration of a method on a stream, with other settings laid over the preset (a TOML file's, say)."""
    presets = PRESETS.get(stream, PRESETS[CUSTOM])
    if preset is not None and preset not in presets:
        raise SettingsError(str(unknown(f"preset of {stream}", preset, list(presets))), setting="preset")
    chosen = presets[preset or next(iter(presets))]
    given = merge(*over)
    net = given.get("net", {}).get("name")
    if net is not None:
        chosen = chosen.with_net(net)
    own = METHOD_PRESETS.get(method, {})
    names = {"stream": {"name": stream}, "method": {"name": method}}
    return RunConfig.from_plain(merge(chosen.settings(method), own.get(ANY, {}), own.get(stream, {}), given, names))


ESTIMATOR_PRESET: dict[str, Any] = {
    # None: follows from the data and the network, see spacenet.model.estimator.
    "epochs": None,
    "learning_rate": None,
    "phantom_classes": None,
    "batch_size": 32,
    "unused_first": True,
    "rewire_fraction": 0.3,
    "centering": 0.7,
}
"""Defaults of the estimator's parameters that differ from those of the settings."""
