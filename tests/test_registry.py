import pytest

from spacenet.errors import SettingsError
from spacenet.registry import METHODS, Registry


def build() -> Registry:
    return Registry("net", {"path": "pathlib:Path"})


def test_built_in_entries_are_imported_when_asked_for() -> None:
    from pathlib import Path

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
    with pytest.raises(SettingsError, match=r"unknown method 'EWC', did you mean 'ewc'\? Choose from naive, ewc"):
        METHODS["EWC"]
