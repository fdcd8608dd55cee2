import itertools
import os
import random

import numpy as np
import pytest

from spacenet.config.presets import (
    METHOD_PRESETS,
    PRESETS,
    default_method,
    preset_config,
    preset_names,
    register_preset,
    resolve_automatic,
)
from spacenet.config.run import RunConfig
from spacenet.config.stream import CUSTOM
from spacenet.data import streams
from spacenet.errors import SettingsError
from spacenet.experiments.run import Run, build_method
from spacenet.methods import get_method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.registry import METHODS, STREAMS
from spacenet.space.blueprint import CPU

needs_data = pytest.mark.skipif(not os.environ.get("SPACENET_DATA"), reason="SPACENET_DATA names no folder with MNIST")
ALL_PRESETS = [(stream, name) for stream, presets in PRESETS.items() for name in presets]
IMAGES = {"split-digits": (8, 8), "split-mnist": (28, 28), "split-fashion-mnist": (28, 28), CUSTOM: (20,)}
COLOR = (3, 32, 32)
NARROW = {"wrn-28-10": {"name": "wrn-28-1"}, "experts": {"name": "wrn-16-4", "hidden": [16, 24, 32, 48]}}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("stream", "name"), ALL_PRESETS)
def test_every_preset_is_a_valid_configuration_of_every_method(stream: str, name: str, method: str) -> None:
    config = preset_config(stream, method, preset=name)
    assert (config.stream.name, config.model.method) == (stream, method)
    assert isinstance(config.model.method_settings, get_method(method).Settings)
    assert config.model.net.name == PRESETS[stream][name].net
    assert RunConfig.from_plain(config.to_plain()) == config


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("stream", "name"), ALL_PRESETS)
def test_every_method_can_be_built_from_every_preset(stream: str, name: str, method: str) -> None:
    """In networks of hundreds of megabytes only what divides them; others in a narrow one that is as deep."""
    narrow = NARROW.get(name) if name == "wrn-28-10" or not issubclass(METHODS[method], SparseMethod) else None
    shape = IMAGES.get(stream, COLOR)
    config = preset_config(stream, method, {"net": narrow} if narrow else {}, preset=name)
    built = build_method(resolve_automatic(config.model, shape), shape, CPU)
    assert built.tasks_learned == 0


def test_every_stream_has_presets_and_settings_of_methods_are_those_of_known_ones() -> None:
    assert set(PRESETS) == {*STREAMS, CUSTOM}
    assert set(METHOD_PRESETS) <= set(METHODS)
    assert preset_names("nothing-like-it") == preset_names(CUSTOM)


def test_static_sparse_has_the_very_settings_of_spacenet() -> None:
    for of_stream, name in ALL_PRESETS:
        adaptive, static = (preset_config(of_stream, method, preset=name) for method in ("spacenet", "static-sparse"))
        assert adaptive.stream == static.stream
        for section in ("net", "training", "preprocessing", "seed"):
            assert getattr(adaptive.model, section) == getattr(static.model, section)
        assert vars(static.model.method_settings).items() <= vars(adaptive.model.method_settings).items()


@pytest.mark.parametrize("stream", ["split-mnist", "split-fashion-mnist"])
def test_the_papers_architecture_and_connections(stream: str) -> None:
    model = preset_config(stream, "spacenet").model
    assert model.net.hidden == (400, 400)
    method = build_method(model, (28, 28), CPU)
    assert isinstance(method, SparseMethod)
    assert list(method.budget(2).connections.values()) == [10_000, 1_640, 80]
    assert model.training.epochs == {"split-mnist": 4, "split-fashion-mnist": 20}[stream]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_learn_the_embedded_digits(method: str) -> None:
    Run(preset_config("split-digits", method))


def test_the_embedded_digits_are_learned() -> None:
    metrics = Run(preset_config("split-digits", "spacenet")).execute().metrics
    assert metrics["acc"] > 75
    assert metrics["task_il_acc"] > 95


@needs_data
def test_split_mnist_is_learned() -> None:
    metrics = Run(preset_config("split-mnist", "spacenet")).execute().metrics
    assert metrics["acc"] > 70  # one seed; ten of them are in docs/results.md
    assert metrics["bwt"] > -16
    assert metrics["connections"] == 5 * (10_000 + 1_640 + 80)
    assert all(layer["reserved"] == 200 for layer in metrics["layers"][:2])


@pytest.mark.parametrize("name", ["split-digits", CUSTOM])
@pytest.mark.parametrize("net", ["small-cnn", "resnet-18", "wrn-10-1"])
def test_another_net_than_the_papers_has_settings_that_work(name: str, net: str) -> None:
    config = preset_config(name, "spacenet", {"net": {"name": net}})
    assert config.model.net.hidden == ()
    digits = streams.stream("split-digits")
    assert build_method(config.model, digits.input_shape, CPU).check(digits) == []


def test_presets_of_a_stream_are_chosen_by_name() -> None:
    assert preset_config("icifar-100", "spacenet").model.net.name == "small-cnn"
    assert preset_config("icifar-100", "spacenet", preset="wrn-28-10").model.net.name == "wrn-28-10"
    expanded = preset_config("cifar-10-100", "spacenet", preset="expanded").model.method_settings
    assert isinstance(expanded, AdaptiveSettings)
    assert expanded.expand == "6:conv2=8,conv3=8"
    message = "preset: unknown preset of icifar-100 'expanded'. Choose from small-cnn, wrn-28-10, experts."
    with pytest.raises(SettingsError) as raised:
        preset_config("icifar-100", "spacenet", preset="expanded")
    assert str(raised.value) == message


def test_a_method_can_be_given_settings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHOD_PRESETS, "naive", {})
    register_preset("naive", {"training": {"epochs": 9, "batch_size": 5}})
    register_preset("naive", {"training": {"epochs": 8}}, stream="split-digits")
    digits, mnist = (preset_config(name, "naive").model.training for name in ("split-digits", "split-mnist"))
    assert (digits.epochs, digits.batch_size) == (8, 5)
    assert (mnist.epochs, mnist.batch_size) == (9, 5)
    assert preset_config("split-digits", "naive", {"training": {"epochs": 7}}).model.training.epochs == 7


@pytest.mark.parametrize(
    ("stream", "preset", "shape", "classes", "tasks"),
    [
        ("split-mnist", "mlp", (28, 28), 2, 5),
        ("split-cifar-10", "small-cnn", COLOR, 2, 5),
        ("icifar-100", "small-cnn", COLOR, 20, 5),
        ("icifar-100", "wrn-28-10", COLOR, 20, 5),
        ("cifar-10-100", "small-cnn", COLOR, 10, 6),
    ],
)
def test_with_a_larger_first_task_all_others_still_fit(
    stream: str, preset: str, shape: tuple[int, ...], classes: int, tasks: int
) -> None:
    """Whichever units a task reserves: a run of one epoch chooses others than a long one, and once it was full."""
    for seed in range(3):
        expected = {"method": {"expected_tasks": tasks}}
        config = preset_config(stream, "spacenet-density", expected, preset=preset).with_seed(seed)
        method = build_method(config.model, shape, CPU)
        assert isinstance(method, SparseMethod)
        assert method.space_left(classes) >= tasks


def random_cut(seed: int, classes: int = 10) -> str:
    """Tasks of random sizes."""
    chance = random.Random(seed)
    ends = sorted(chance.sample(range(1, classes), chance.randint(1, classes - 1)))
    labels = chance.sample(range(classes), classes)
    return "/".join(",".join(map(str, labels[a:b])) for a, b in itertools.pairwise([0, *ends, classes]))


def test_random_cuts_of_a_stream_fit() -> None:
    for seed in range(50):
        tasks = random_cut(seed)
        run = Run(preset_config("split-digits", "spacenet", {"stream": {"tasks": tasks}, "training": {"epochs": 1}}))
        assert run.record.warnings == [], tasks
        if seed < 4:
            assert len(run.execute().metrics["tasks"]) == tasks.count("/") + 1


@pytest.mark.parametrize(
    ("stream", "preset", "shape", "classes"),
    [
        ("split-mnist", "mlp", (28, 28), 10),
        ("split-fashion-mnist", "mlp", (28, 28), 10),
        ("split-cifar-10", "small-cnn", COLOR, 10),
        ("icifar-100", "small-cnn", COLOR, 100),
        ("cifar-10-100", "small-cnn", COLOR, 60),
    ],
)
@pytest.mark.parametrize("method", ["spacenet", "spacenet-density"])
def test_other_cuts_fit(stream: str, preset: str, shape: tuple[int, ...], classes: int, method: str) -> None:
    for tasks in (2, 3, 5, 10) if classes == 10 else (2, 5, 10, 11, 20):
        expected = {"method": {"expected_tasks": tasks}}
        built = build_method(preset_config(stream, method, expected, preset=preset).model, shape, CPU)
        assert isinstance(built, SparseMethod)
        assert built.space_left(-(-classes // tasks)) >= tasks, tasks


def test_sizes_that_are_given_are_those_of_a_task() -> None:
    over = {"method": {"selected": [30], "expected_tasks": 10}}
    method = build_method(preset_config("split-digits", "spacenet", over).model, (8, 8), CPU)
    assert isinstance(method, SparseMethod)
    assert method.budget(2).selected == {"hidden1": 30, "hidden2": 30}
    assert method.budget(2).reserved == {"hidden1": 20, "hidden2": 20}


def test_a_preset_fits_into_a_wider_network_too() -> None:
    over = {"net": {"hidden": [4_000, 4_000]}}
    for classes, connections in ((2, 80), (5, 200)):
        method = build_method(preset_config("split-mnist", "spacenet", over).model, (28, 28), CPU)
        assert isinstance(method, SparseMethod)
        assert list(method.budget(classes).connections.values()) == [10_000, 1_640, connections]


@pytest.mark.parametrize("shape", [(20,), (8, 8), (3, 32, 32), (3, 4, 4)])
@pytest.mark.parametrize("method", ["spacenet-density", "spacenet"])
def test_a_run_and_the_estimator_have_the_same_defaults_on_data_of_ones_own(
    method: str, shape: tuple[int, ...]
) -> None:
    from spacenet.model.estimator import SpaceNetClassifier

    run = resolve_automatic(preset_config("anything", method).model, shape)
    model = SpaceNetClassifier(method=method).new_model(np.zeros((5, *shape)))
    assert model.config == run
    assert run.net.name == ("small-cnn" if shape == (3, 32, 32) else "mlp")
    assert default_method("anything") == SpaceNetClassifier().method == "spacenet-density"
    assert default_method("split-mnist") == "spacenet"


def test_the_sizes_of_a_preset_are_for_its_network_or_a_wider_one() -> None:
    wide, narrow, deep = (
        preset_config("split-mnist", "spacenet", {"net": {"hidden": hidden}}).model
        for hidden in ([4000, 4000], [50, 400], [400, 400, 400])
    )
    kind = AdaptiveSettings
    assert isinstance(wide.method_settings, kind)
    assert isinstance(narrow.method_settings, kind)
    assert isinstance(deep.method_settings, kind)
    assert wide.method_settings.selected == (80,)
    assert narrow.method_settings.selected == deep.method_settings.selected == ()
    assert narrow.net.hidden == (50, 400)
