"""Presets: the settings of every method on every benchmark.

They are the paper's, or, where a search on held-out training data found better ones, those; docs/settings.md says which
differ from the paper's text, and why. `preset_config` puts the layers together: what a preset says for all methods,
what it says for one, what that method has elsewhere, and what the user gives.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import ge
from typing import Any

from spacenet.config.model import AUTO, ModelConfig, merge
from spacenet.config.run import RunConfig
from spacenet.config.stream import CUSTOM
from spacenet.registry import unknown

Layer = Mapping[str, Any]
"""Nested settings: {"training": {"epochs": 4}, "method": {…}, …}."""
SIZES = {"selected", "reserved", "connections", "first_selected", "first_reserved", "first_connections"}
SMALLEST_IMAGE = 8
"""Pixels of height and width that a convolutional network is worth while for."""
POOLED = ("gaussian", "spacenet-density")
"""Methods that pool the covariance of classes on features of an encoder."""
CONVOLUTIONAL = re.compile("small-cnn|resnet-|wrn-")
"""Names of this package's networks for images, whose presets have other learning rates and no phantom classes."""
ANY, MNIST, FASHION_MNIST = "any", "split-mnist", "split-fashion-mnist"


@dataclass(frozen=True)
class Preset:
    """The settings of one experiment."""

    base: Layer
    """For every method: the net, the preprocessing, the training of the dense ones."""
    space: Layer = field(default_factory=dict)
    """What a task may use of the network, for the sparse methods."""
    sparse_training: Layer = field(default_factory=dict)
    """Laid over the base for spacenet and static-sparse, alike: their difference is what rewiring makes."""
    density: Layer = field(default_factory=lambda: {"preprocessing": {"centering": 0.0}})
    """Laid over spacenet's for spacenet-density. Edges show best in images that are not centered."""
    rewire_fraction: float = 0.2
    """Of spacenet and spacenet-density."""

    @property
    def net(self) -> str:
        """The network that the preset was made for."""
        return str(self.base.get("net", {}).get("name", "mlp"))

    def with_net(self, net: str) -> "Preset":
        """The same for another network. Its budget was not searched for; it follows from the network's size."""
        if net == self.net:
            return self
        density = self.density if self.net == AUTO else {}
        return replace(self, base={**self.base, "net": {"name": net}}, space=_ANY_NET, density=density)

    def with_hidden(self, hidden: Sequence[int] | None) -> "Preset":
        """The same for other widths of hidden layers: where sizes were made for wider ones, they follow from these."""
        own = self.base.get("net", {}).get("hidden")
        if not hidden or not own or (len(hidden) == len(own) and all(map(ge, hidden, own))):
            return self
        return replace(self, base=merge(self.base, {"net": {"hidden": list(hidden)}}), space=_ANY_NET)

    def settings(self, method: str) -> dict[str, Any]:
        """The settings of a method."""
        static = {"method": self.space, "training": self.sparse_training}
        adaptive = merge(static, {"method": {"rewire_fraction": self.rewire_fraction}})
        of_methods: dict[str, Layer] = {
            "static-sparse": static,
            "spacenet": adaptive,
            "spacenet-density": merge(adaptive, self.density),
            "spacenet-rehearsal": {"method": self.space},
        }
        return merge(self.base, of_methods.get(method, {}))


def _base(centering: float, net: Layer, **training: Any) -> Layer:
    return {"net": net, "preprocessing": {"centering": centering}, "training": training}


def _own(method: Layer | None = None, **training: Any) -> Layer:
    return {"method": method or {}, "training": training}


_ANY_NET = {"unused_first": True}  # sizes follow from the network and the tasks to be expected
_MLP_SPACE = {
    "selected": [80],
    "reserved": [40],
    "connections": [10_000, 1_640, 80],
    "phantom_classes": 8,
    "sized_for": [5, 2],
}
_SMALL_CNN_10_100 = {
    "selected": [0],
    "reserved": [2, 2, 5, 6, 30],
    "connections": [0.12],
    "phantom_classes": 0,
    "sized_for": [6, 10],
}
_SMALL_CNN_ICIFAR = {
    "selected": [0, 0, 0, 0, 150],
    "reserved": [2, 2, 3, 4, 80],
    "unused_first": True,
    "connections": [0.15],
    "phantom_classes": 0,
    "sized_for": [5, 20],
}
_WRN = {
    "selected": [0, 40, 60, 120],
    "reserved": [0, 16, 24, 60],
    "connections": [0.02],
    "phantom_classes": 0,
    "sized_for": [5, 20],
}
# For spacenet-density, whose features are those of the first task: it gets more of the space and is learned longer,
# the others for fewer epochs, so that the whole takes less than one and a half times spacenet's time.
_FEATURES = {"components": 1, "directions": 20, "shrinkage": 0.75}
_FIRST_SMALL_CNN = _FEATURES | {"first_selected": [0, 0, 0, 0, 300], "first_connections": [0.4]}
_FIRST_WRN = _FEATURES | {"first_selected": [0, 80, 120, 240], "first_connections": [0.06], "rotations": "first"}
_LATER = {"epochs": 15, "schedule": "cosine"}
_DENSITY_SMALL_CNN = _own(_FIRST_SMALL_CNN | {"connections": [0.08] * 5 + [0.15]}, first_epochs=60, **_LATER)
_DENSITY_10_100 = _own(_FIRST_SMALL_CNN | {"connections": [0.06] * 5 + [0.12]}, first_epochs=25, **_LATER)
_DENSITY_WRN = _own(_FIRST_WRN, first_epochs=30, **_LATER)
_EXPANDED = {"connections": [0.12, 0.165, 0.12, 0.12, 0.12, 0.12], "expand": "6:conv2=8,conv3=8"}
_CIFAR = {"epochs": 20, "augment": "crop-flip"}
_SMALL_CNN = _base(0.0, {"name": "small-cnn"}, batch_size=64, learning_rate=0.1, **_CIFAR)
_WIDE_RESNET = _base(
    0.0, {"name": "wrn-28-10"}, batch_size=128, learning_rate=0.04, momentum=0.9, precision="bf16", **_CIFAR
)
# For spacenet-experts: so wide that 20 of its experts fit; with fewer, its `max_weights` bounds them.
_EXPERTS = _base(
    0.0,
    {"name": "wrn-16-4", "hidden": [240, 960, 1920, 3840]},
    batch_size=128,
    learning_rate=0.1,
    schedule="one-cycle",
    momentum=0.9,
    nesterov=True,
    weight_decay=0.001,
    precision="bf16",
    **_CIFAR | {"epochs": 50},
)

# For spacenet-density on grey images: a classifier on random features joins the densities.
_READOUT = {"method": {"random_features": 3000, "sharpness": 0.01}, "preprocessing": {"centering": 0.0}}
_MNIST_MLP = Preset(
    _base(0.7, {"hidden": [400, 400]}, epochs=4, batch_size=128, learning_rate=0.1),
    space=_MLP_SPACE,
    sparse_training={"learning_rate": 0.02},
    rewire_fraction=0.5,
)
_FASHION_MLP = Preset(
    _base(0.5, {"hidden": [400, 400]}, epochs=20, batch_size=128, learning_rate=0.1),
    space=_MLP_SPACE | {"selected": [80, 60]},
    sparse_training={"learning_rate": 0.005, "weight_decay": 0.05},
    rewire_fraction=0.5,
)

PRESETS: dict[str, dict[str, Preset]] = {
    # For data never seen. The rest follows from the data: see `resolve_automatic` and docs/own-data.md.
    CUSTOM: {"default": Preset(_base(0.7, {"name": AUTO}, batch_size=32), space=_ANY_NET, rewire_fraction=0.3)},
    "split-digits": {
        "mlp": Preset(
            _base(0.5, {"hidden": [200, 200]}, epochs=20, batch_size=16, learning_rate=0.05),
            space={
                "selected": [40],
                "reserved": [20],
                "connections": [1_200, 600, 60],
                "phantom_classes": 8,
                "sized_for": [5, 2],
            },
            sparse_training={"learning_rate": 0.02},
            rewire_fraction=0.5,
        )
    },
    MNIST: {"mlp": _MNIST_MLP, "readout": replace(_MNIST_MLP, density=_READOUT)},
    FASHION_MNIST: {"mlp": _FASHION_MLP, "readout": replace(_FASHION_MLP, density=_READOUT)},
    "split-cifar-10": {
        "small-cnn": Preset(
            _SMALL_CNN, _SMALL_CNN_10_100 | {"sized_for": [5, 2]}, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN
        )
    },
    "icifar-100": {
        "small-cnn": Preset(_SMALL_CNN, _SMALL_CNN_ICIFAR, rewire_fraction=0.3, density=_DENSITY_SMALL_CNN),
        "wrn-28-10": Preset(_WIDE_RESNET, _WRN, rewire_fraction=0.3, density=_DENSITY_WRN),
        "experts": Preset(_EXPERTS, _ANY_NET),
    },
    "cifar-10-100": {
        "small-cnn": Preset(_SMALL_CNN, _SMALL_CNN_10_100, rewire_fraction=0.3, density=_DENSITY_10_100),
        "expanded": Preset(_SMALL_CNN, _SMALL_CNN_10_100 | _EXPANDED, rewire_fraction=0.3),
        "experts": Preset(_EXPERTS, _ANY_NET),
    },
}
"""For each stream its presets by name; the first is the default."""

_ADAM = _own(optimizer="adam", learning_rate=0.001)
_NOT_CENTERED = {"preprocessing": {"centering": 0.0}}  # edges show best in images that are not centered
_EXPERT = {"max_weights": 31_000_000, "contrast": 1.0, "statistics_weight": 0.15, "shrinkage": 0.75, "mirror": True}
_EWC, _SI, _LWF = {"strength": 1200.0}, {"strength": 600.0}, {"strength": 8.0}

METHOD_PRESETS: dict[str, dict[str, Layer]] = {
    "spacenet-experts": {"icifar-100": _own(_EXPERT), "cifar-10-100": _own(_EXPERT, first_epochs=25)},
    "ewc": {ANY: _ADAM, MNIST: _own(_EWC), FASHION_MNIST: _own(_EWC, epochs=4)},
    "si": {ANY: _ADAM, MNIST: _own(_SI), FASHION_MNIST: _own(_SI, epochs=4)},
    "mas": {ANY: _ADAM, FASHION_MNIST: _own(epochs=4)},
    "lwf": {MNIST: _own(_LWF, learning_rate=0.05), FASHION_MNIST: _own(_LWF, learning_rate=0.01, epochs=1)},
    "ldc": {MNIST: _own(learning_rate=0.05), FASHION_MNIST: _own(learning_rate=0.01, epochs=4)},
    "er": {MNIST: _own(epochs=6), FASHION_MNIST: _own(epochs=6)},
    "dgr": {ANY: _ADAM, MNIST: _own(epochs=8), FASHION_MNIST: _own(epochs=8)},
    "icarl": {
        ANY: _own(momentum=0.9, weight_decay=1e-5),
        MNIST: _own({"temperature": 2.5}, epochs=10),
        FASHION_MNIST: _own(epochs=6),
    },
    "spacenet-rehearsal": {MNIST: _own(epochs=10)},
    "den": {FASHION_MNIST: _own(epochs=4)},
    "cwr": {FASHION_MNIST: _own(epochs=4)},
    "ar1": {FASHION_MNIST: _own(epochs=4)},
    "piggyback": {ANY: _ADAM},
    "gaussian": {ANY: _NOT_CENTERED},
    "ncm": {ANY: _NOT_CENTERED},
    "slda": {ANY: _NOT_CENTERED},
    "ranpac": {ANY: _NOT_CENTERED},
}
"""What single methods have on all streams (`ANY`) or on one, laid over the stream's preset."""


def register_preset(method: str, settings: Layer, stream: str = ANY) -> None:
    """Let a method have these settings on a stream, by default on all of them.

    Examples
    --------
    >>> from spacenet.config.presets import METHOD_PRESETS, register_preset
    >>> register_preset("my-method", {"training": {"epochs": 2}}, stream="split-digits")
    >>> METHOD_PRESETS.pop("my-method")
    {'split-digits': {'training': {'epochs': 2}}}
    """
    METHOD_PRESETS.setdefault(method, {})[stream] = settings


def preset_names(stream: str) -> list[str]:
    """The presets of a stream, the default first."""
    return list(PRESETS.get(stream, PRESETS[CUSTOM]))


def preset_config(stream: str, method: str, *over: Layer, preset: str | None = None) -> RunConfig:
    """The configuration of a method on a stream, with other settings laid over the preset (a TOML file's, say)."""
    given = merge(*over)
    encoded = bool(given.get("preprocessing", {}).get("encoder"))  # features are no images, whatever the stream is
    presets = PRESETS[CUSTOM] if encoded else PRESETS.get(stream, PRESETS[CUSTOM])
    if preset is not None and preset not in presets:
        raise unknown(f"preset of {stream}", preset, presets, setting="preset")
    chosen = presets[preset or next(iter(presets))]
    net = given.get("net", {}).get("name")
    if net is not None:
        chosen = chosen.with_net(net)
    chosen = chosen.with_hidden(given.get("net", {}).get("hidden"))
    if SIZES & given.get("method", {}).keys():
        given = merge({"method": {"sized_for": []}}, given)  # sizes that are given are those of a task
    own = METHOD_PRESETS.get(method, {})
    names = {"stream": {"name": stream}, "method": {"name": method}}
    return RunConfig.from_plain(
        merge(chosen.settings(method), own.get(ANY, {}), {} if encoded else own.get(stream, {}), given, names)
    )


def default_method(stream: str, encoder: object = None) -> str:
    """The method that learns a stream if none is named: the paper's on its benchmarks, on other data what did best."""
    return "spacenet-density" if encoder or PRESETS.get(stream, PRESETS[CUSTOM]) is PRESETS[CUSTOM] else "spacenet"


def resolve_automatic(config: ModelConfig, input_shape: tuple[int, ...]) -> ModelConfig:
    """The configuration with what suits samples of this shape, and the network, in place of what is left open."""
    name = choose_net(input_shape) if config.net.name == AUTO else config.net.name
    net, training, settings = replace(config.net, name=name), config.training, config.method_settings
    convolves = CONVOLUTIONAL.match(name) is not None
    if training.learning_rate is None:
        training = replace(training, learning_rate=0.1 if convolves else 0.05)
    if vars(settings).get("phantom_classes", 0) is None:
        phantoms: dict[str, Any] = {"phantom_classes": 0 if convolves else 8}
        settings = replace(settings, **phantoms)
    if vars(settings).get("pooled_covariance", False) is None and config.method in POOLED:
        pooled: dict[str, Any] = {"pooled_covariance": _suits_pooling(config)}
        settings = replace(settings, **pooled)
    return replace(config, net=net, training=training, method_settings=settings)


def _suits_pooling(config: ModelConfig) -> bool:
    settings = vars(config.method_settings)
    one = (settings["components"] or 1) == 1
    return bool(config.preprocessing.encoder) and one and not settings.get("random_features")


def choose_net(input_shape: tuple[int, ...]) -> str:
    """The network for samples of this shape: the small CNN for images with channels, otherwise the MLP."""
    return "small-cnn" if len(input_shape) == 3 and min(input_shape[1:]) >= SMALLEST_IMAGE else "mlp"
