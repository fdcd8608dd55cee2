from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt

from spacenet.config.settings import Settings, describe_bounds, field_docs, field_types, from_plain, to_plain
from spacenet.errors import SettingsError


@dataclass(frozen=True)
class Sample(Settings):
    epochs: Annotated[int, Ge(1)] = 4
    """How many
    epochs."""
    first: Annotated[int, Ge(1)] | None = None
    share: Annotated[float, Ge(0), Lt(1)] = 0.5
    part: Annotated[float, Gt(0), Le(1)] = 0.5
    hidden: tuple[Annotated[int, Ge(1)], ...] = ()
    rates: tuple[Annotated[float, Gt(0)], ...] = ()
    kind: Literal["slow", "fast"] = "slow"
    mean: float | tuple[float, ...] | None = None
    path: Path | None = None
    factor: Annotated[float, Ge(0), Le(9)] | Literal["auto"] = 0.0

    def validate(self) -> None:
        if self.kind == "fast" and self.epochs > 10:
            raise SettingsError("fast goes with at most 10 epochs", setting="kind")


@dataclass(frozen=True)
class More(Sample):
    extra: int = 0
    """One more."""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "epochs: 0 is out of range (1 or more)"),
        ({"first": 0}, "first: 0 is out of range (1 or more)"),
        ({"share": 1.0}, "share: 1.0 is out of range (0 or more, less than 1)"),
        ({"part": 0.0}, "part: 0.0 is out of range (more than 0, at most 1)"),
        ({"share": float("nan")}, "share: nan is not a finite number"),
        ({"mean": float("inf")}, "mean: inf is not a finite number"),
        ({"hidden": (4, 0)}, "hidden: 0 is out of range (1 or more)"),
        ({"rates": (0.0,)}, "rates: 0.0 is out of range (more than 0)"),
        ({"epochs": "3"}, "epochs: '3' is not an integer"),
        ({"epochs": True}, "epochs: True is not an integer"),
        ({"epochs": 2.5}, "epochs: 2.5 is not an integer"),
        ({"share": "0.5"}, "share: '0.5' is not a number"),
        ({"kind": "fats"}, "kind: unknown value 'fats', did you mean 'fast'? Choose from slow, fast."),
        ({"factor": 10}, "factor: 10 is out of range (0 to 9)"),
        ({"factor": float("nan")}, "factor: nan is not a finite number"),
        ({"factor": True}, "factor: True is not a number"),
        ({"factor": "atuo"}, "factor: 'atuo' is not a number or auto"),
        ({"mean": 1e39}, "mean: 1e+39 is out of range (a magnitude of at most 1e+15)"),
        ({"epochs": 2**63}, "epochs: 9223372036854775808 is out of range (a magnitude of at most 9.22e+18)"),
        ({"epochs": -(16**5000)}, "epochs: a value of the type int, too large to show, is out of range (1 or more)"),
        ({"kind": "fast", "epochs": 11}, "kind: fast goes with at most 10 epochs"),
    ],
)
def test_a_value_outside_its_bounds_is_an_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Sample(**values)  # type: ignore[arg-type]
    assert str(raised.value) == message
    assert isinstance(raised.value, ValueError)
    assert raised.value.for_cli() == "--" + message


def test_values_within_bounds_are_taken() -> None:
    Sample(epochs=1, first=None, share=0.0, part=1.0, hidden=(1, 2), kind="fast", mean=(0.1, 0.2))


def test_the_texts_below_fields_are_found_also_inherited_ones() -> None:
    assert field_docs(More) == {"epochs": "How many epochs.", "extra": "One more."}


def test_bounds_in_words() -> None:
    found = {name: describe_bounds(hint) for name, hint in field_types(Sample).items()}
    assert found["epochs"] == found["first"] == found["hidden"] == "1 or more"
    assert found["kind"] == found["mean"] == ""


def test_plain_values_and_back() -> None:
    settings = Sample(epochs=3, hidden=(5, 6), rates=(1.0, 0.5), mean=(0.5,), path=Path("a/b"))
    plain = to_plain(settings)
    assert plain["hidden"] == [5, 6]
    assert plain["path"] == "a/b"
    assert "first" not in plain
    assert from_plain(Sample, plain) == settings
    assert [from_plain(Sample, {"factor": each}).factor for each in ("auto", 2, 0.5)] == ["auto", 2.0, 0.5]


def test_one_number_stands_for_a_list_and_integers_for_floats() -> None:
    assert from_plain(Sample, {"hidden": 5, "rates": 1, "share": 0}) == Sample(hidden=(5,), rates=(1.0,), share=0.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epoch": 3}, "[section]: unknown setting 'epoch', did you mean 'epochs'? Choose from epochs, first"),
        ({"epochs": "many"}, "[section]: epochs must be an integer, not 'many'"),
        ({"epochs": 1.5}, "[section]: epochs must be an integer, not 1.5"),
        ({"factor": "quick"}, "[section]: factor must be a number or auto, not 'quick'"),
        ({"kind": "quick"}, "kind: unknown value 'quick'"),
        ({"share": 10**400}, "[section]: share has a number with more than 300 digits"),
        ({"mean": [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]}, "[section]: mean has more than 20 levels"),
        ({"hidden": [1] * 10_001}, "[section]: hidden has more than 10,000 values"),
        ({"hidden": "x" * 1000}, "[section]: hidden must be a list, each an integer, not 'xxx"),
    ],
)
def test_plain_values_that_do_not_belong_there(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        from_plain(Sample, values, "[section]")
    assert str(raised.value).startswith(message)
    assert len(str(raised.value)) < 400
