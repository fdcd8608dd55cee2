from collections import Counter
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from spacenet.errors import SettingsError
from spacenet.registry import (
    DATASETS,
    METHODS,
    NETS,
    STREAMS,
    Registry,
    nearest,
    register_entries,
    registered_entries,
)


def build() -> Registry:
    return Registry("net", {"path": "pathlib:Path"})


def test_built_in_entries_are_imported_when_asked_for() -> None:
    assert build()["path"] is Path


def test_an_entry_can_be_registered_and_removed() -> None:
    registry, entry = build(), object()
    registry.register("mine", entry)
    assert registry["mine"] is entry
    assert list(registry) == ["path", "mine"]
    registry.unregister("mine")
    assert "mine" not in registry


def test_a_cell_that_registers_can_be_run_again() -> None:
    registry = build()
    for _ in range(2):

        class Mine:
            pass

        registry.register("mine", Mine)
    assert registry["mine"] is Mine


def test_a_name_belongs_to_one_entry() -> None:
    registry = build()
    registry.register("mine", object())
    for name in ("mine", "path"):
        with pytest.raises(SettingsError, match="already a net named"):
            registry.register(name, object())


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"unknown method 'EWC', did you mean 'ewc'\?$"):
        METHODS["EWC"]


def test_nothing_is_imported_to_list_the_names() -> None:
    registry = Registry("net", {"broken": "no_such_module:Anything"})
    assert list(registry) == ["broken"]
    assert "broken" in registry
    assert registry.get("missing") is None
    with pytest.raises(ModuleNotFoundError):
        registry["broken"]


@pytest.mark.parametrize("name", ["", " mine"])
def test_a_name_without_letters_or_with_spaces_around_it_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="is not a name for a net"):
        build().register(name, object())


def test_what_is_registered_here_can_be_registered_elsewhere() -> None:
    entry = object()
    NETS.register("mine", entry)
    entries = registered_entries()
    NETS.unregister("mine")
    assert entries["net"]["mine"] is entry
    assert set(entries) == {registry.kind for registry in (METHODS, NETS, DATASETS, STREAMS)}
    try:
        register_entries(entries)
        register_entries(entries)  # a worker may be used for several runs
        assert NETS["mine"] is entry
    finally:
        NETS.unregister("mine")
    assert "mine" not in NETS


def test_an_entry_point_of_an_installed_package_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"theirs": "collections:Counter", "broken": "no_such_module:Anything", "path": "collections:deque"}

    def found(group: str) -> list[EntryPoint]:
        assert group == "spacenet.nets"
        return [EntryPoint(name, value, group) for name, value in points.items()]

    monkeypatch.setattr("spacenet.registry.entry_points", found)
    registry = build()
    assert list(registry) == ["path", "theirs", "broken"]
    assert registry["theirs"] is Counter
    assert registry["path"] is Path  # built-in entries cannot be replaced
    with pytest.raises(SettingsError, match="the net 'broken' .* cannot be loaded: No module named 'no_such_module'"):
        registry["broken"]


@pytest.mark.parametrize(
    ("name", "choices", "meant"),
    [
        ("lr", ["epochs", "learning_rate", "clr_x"], "learning_rate"),
        ("wd", ["weight_decay", "width"], "weight_decay"),
        ("MNIST", list(STREAMS), "split-mnist"),
        ("cifar10", list(STREAMS), "split-cifar-10"),
        ("cifar100", list(STREAMS), "icifar-100"),
        ("fashion", list(STREAMS), "split-fashion-mnist"),
        ("spacenet-densty", list(METHODS), "spacenet-density"),
        ("SpaceNet", list(METHODS), "spacenet"),
        ("batch", ["batch_size", "epochs"], "batch_size"),
        ("small_cnn", ["mlp", "small-cnn"], "small-cnn"),
        ("zzz", list(METHODS), None),
        ("", list(METHODS), None),
        ("-", ["--out"], None),
    ],
)
def test_what_was_probably_meant(name: str, choices: list[str], meant: str | None) -> None:
    assert nearest(name, choices) == meant
