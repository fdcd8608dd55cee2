"""What encoders take: checks of texts and sounds, and how they are gathered."""

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import FULL_SCALE, Array, SoundInput, gather
from spacenet.errors import DataError
from tests.encoders.support import FEATURES, calls_of, pictures, tiny, tiny_texts

SOUNDS = Encoder("loudness", "", "", 1, lambda x: x.abs().amax(1, keepdim=True), SoundInput(shortest=10))


def objects(*rows: Any) -> Array:
    made = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        made[number] = row
    return made


@pytest.mark.parametrize(
    ("x", "problem"),
    [
        (np.zeros((2, 5)), r"these samples are float64, \(2, 5\)"),
        (np.array([["one", "two"]]), r"\(1, 2\)"),
        (objects("one", 3), "row 1 is '3', a int"),
        (objects("one", None), "row 1 is missing"),
        (objects("one", float("nan")), "row 1 is missing"),
        (objects("one", b"two"), "a bytes"),
        (objects("\ud800"), "row 0 has characters that are not text"),
    ],
)
def test_what_is_no_text_is_refused(x: Array, problem: str) -> None:
    with pytest.raises(DataError, match=f"takes texts: a list or an array of str, one for each sample; .*{problem}"):
        tiny_texts().prepare(x)


@pytest.mark.parametrize(
    ("x", "problem"),
    [
        (np.zeros((2, 3, 4)), r"float64, \(2, 3, 4\)"),
        (np.zeros((1, 4), np.uint8), "row 0 holds uint8 values"),
        (np.full((1, 4), 1.5), "row 0 has values outside of this range"),
        (np.full((1, 4), np.nan), "row 0 has values outside of this range"),
        (objects(np.zeros(3), np.zeros((2, 2))), r"row 1 is an array of the shape \(2, 2\)"),
        (objects(np.zeros(3), "bang"), "row 1 is 'bang', a str"),
    ],
)
def test_what_is_no_sound_is_refused(x: Array, problem: str) -> None:
    with pytest.raises(DataError, match=f"takes sounds of one channel at 16,000 Hz.*{problem}"):
        SOUNDS.prepare(x)


def test_sounds_have_the_values_of_16_bits_and_a_shortest_length() -> None:
    x = objects(np.array([0.5, -0.25]), np.arange(12, dtype=np.int16))
    short, long = SOUNDS.prepare(x)
    assert short.tolist() == [0.5 * FULL_SCALE, -0.25 * FULL_SCALE, *[0] * 8]
    assert long.tolist() == list(range(12))
    assert SOUNDS.encode(SOUNDS.prepare(x)).tolist() == [[0.5 * FULL_SCALE], [11]]


def test_constant_sounds_and_arrays_keep_their_features() -> None:
    sounds = np.full((2, 12), 0.5)
    assert SOUNDS.encode(SOUNDS.prepare(sounds)).tolist() == [[0.5 * FULL_SCALE]] * 2
    arrays = Encoder("means", "", "", 3, lambda x: x.mean((2, 3)))
    assert arrays.encode(np.full((2, 3, 4, 4), 7, np.uint8)).tolist() == [[7.0] * 3] * 2


def test_features_of_texts_do_not_depend_on_how_many_come_together() -> None:
    encoder, texts = tiny_texts(), objects("a rainy day", "", "wow")
    together = encoder.encode(encoder.prepare(texts))
    assert together.shape == (3, FEATURES)
    assert np.array_equal(together[2:], encoder.encode(encoder.prepare(texts[2:])))
    assert together[2].tolist() == [0, 0, 0, 1, 0, 2]


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"])])
def test_texts_are_gathered(given: Any) -> None:
    found = gather(given)
    assert found is not None
    assert found.tolist() == ["a", "b"]


def test_sounds_of_different_lengths_are_gathered_and_numbers_are_not() -> None:
    found = gather([np.zeros(3), np.zeros(4)])
    assert found is not None
    assert [len(each) for each in found] == [3, 4]
    numbers: list[Any] = [
        [1, 2],
        [[1.0], [2.0]],
        [np.zeros(3), np.zeros(3)],
        np.zeros((2, 3)),
        pd.Series([1, 2]),
        [],
        3,
    ]
    assert all(gather(each) is None for each in numbers)


def test_an_encoder_knows_whether_it_takes_images() -> None:
    assert tiny().images == tiny().takes
    assert (tiny_texts().images, tiny_texts().shape) == (None, ())
    encoder = tiny()
    with pytest.raises(DataError, match="takes images as bytes"):
        encoder.prepare(objects("a text"))
    encoder.encode(encoder.prepare(pictures(1)))
    assert calls_of(encoder) == 1
