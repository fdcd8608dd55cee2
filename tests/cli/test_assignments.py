"""Settings as NAME=VALUE are typed and checked."""

import pytest

from spacenet.cli.assignments import parse_assignments
from spacenet.errors import SettingsError

METHODS = ["naive", "ewc", "spacenet"]


def test_values_have_the_types_of_the_settings() -> None:
    texts = ["epochs=3", "optimizer=adam", "hidden=20,30", "ewc.strength=500", "spacenet.selected=[40]"]
    texts += ["ewc.epochs = 7", "spacenet.unused_first=True", "spacenet.expand=6:conv2=8"]
    common, own = parse_assignments(texts, METHODS)
    assert common == {"epochs": 3, "optimizer": "adam", "hidden": (20, 30)}
    assert own["ewc"] == {"strength": 500, "epochs": 7}
    assert own["spacenet"] == {"selected": (40,), "unused_first": True, "expand": "6:conv2=8"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ewc", "set: 'ewc' is not NAME=VALUE or METHOD.NAME=VALUE"),
        ("ewc.=3", "is not NAME=VALUE"),
        ("ewc.strenght=3", "set: ewc.strenght=3: unknown setting of ewc 'strenght', did you mean 'strength'"),
        ("ewc.rewire_fraction=3", "'rewire_fraction' is a setting of spacenet-rehearsal, spacenet"),
        ("ewk.strength=3", "unknown method 'ewk', did you mean 'ewc'"),
        ("icarl.temperature=3", "icarl is not among the methods compared: naive, ewc, spacenet"),
        ("ewc.strength=abc", "strength: must be a number, not 'abc'"),
        ("ewc.epochs=1.5", "epochs: must be an integer, not 1.5"),
        ("ewc.epochs=0", r"epochs: 0 is out of range \(1 or more\)"),
        ("optimizer=adm", "optimizer: unknown value 'adm', did you mean 'adam'"),
        ("epochs=1\nseed = 2", "epochs: must be an integer"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_assignments([text], METHODS)
