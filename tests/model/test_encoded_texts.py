"""Models that learn on the features of texts and of sounds."""

from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import spacenet
from spacenet.encoders import loading
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import SoundInput
from spacenet.errors import DataError, SettingsError
from spacenet.model.file import load_model
from tests.encoders.support import FEATURES, LetterCounts, sentences, tiny, tiny_texts

QUICK = {"epochs": 10, "hidden": (20,)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_own", {})


def test_texts_are_learned_task_by_task_and_saved(tmp_path: Path) -> None:
    encoder, path = tiny_texts(), tmp_path / "model.safetensors"
    classifier = spacenet.SpaceNetClassifier(encoder=encoder, **QUICK).partial_fit(*sentences(["weather", "food"]))
    texts, labels = sentences(["sea"])
    classifier.partial_fit(pd.Series(texts), labels)
    texts, labels = sentences(["weather", "food", "sea"])
    assert (classifier.predict(texts) == labels).all()
    assert (classifier.predict(np.array(texts)) == labels).all()
    assert classifier.n_features_in_ == FEATURES
    classifier.save(path)
    preprocessing = load_model(path).config.preprocessing
    assert (preprocessing.encoder, preprocessing.encoder_checksum) == ("own:letters", "no weights")
    assert (spacenet.load(path, encoder=tiny_texts()).predict(texts) == labels).all()


def test_features_are_kept_by_the_text() -> None:
    encoder = tiny_texts()
    assert isinstance(encoder.network, LetterCounts)
    texts, labels = sentences(["weather", "food"])
    classifier = spacenet.SpaceNetClassifier(encoder=encoder, **QUICK).fit(texts, labels)
    assert encoder.network.calls == len(set(texts))
    classifier.predict([*texts, "new"])
    assert encoder.network.calls == len(set(texts)) + 1


def test_texts_where_numbers_are_needed() -> None:
    texts, labels = sentences(["weather", "food"])
    with pytest.raises(SettingsError, match=r'give an encoder, e\.g\. "all-minilm-l6-v2" for texts'):
        spacenet.SpaceNetClassifier(**QUICK).fit(texts, labels)
    with pytest.raises(DataError, match="the encoder own:tiny takes images as bytes"):
        spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).fit(texts, labels)


def test_numbers_where_texts_are_needed() -> None:
    texts, labels = sentences(["weather", "food"])
    classifier = spacenet.SpaceNetClassifier(encoder=tiny_texts(), **QUICK).fit(texts, labels)
    with pytest.raises(DataError, match=r"own:letters takes texts: a list or an array of str.*float64, \(2, 5\)"):
        classifier.predict(np.zeros((2, 5)))
    for wrong in (pd.DataFrame({"text": ["a", "b"]}), [b"a", b"b"], [["a"], ["b"]], [1, 2], []):
        with pytest.raises(DataError, match="own:letters takes texts: a list or an array of str"):
            classifier.predict(wrong)
    with pytest.raises(DataError, match="row 1 is missing"):
        classifier.predict(["a text", None])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.partial_fit(texts, labels[1:])
    assert len(classifier.predict(np.zeros((2, FEATURES)))) == 2  # these are features already


def test_sounds_of_different_lengths() -> None:
    encoder = Encoder(
        "size", "", "", 2, lambda x: x.abs().mean(1, keepdim=True) * x.new_tensor([1.0, 2.0]), SoundInput()
    )
    rng = np.random.default_rng(0)
    sounds = [rng.uniform(-loud, loud, rng.integers(500, 900)) for loud in [0.1] * 10 + [0.9] * 10]
    labels = np.repeat(["soft", "loud"], 10)
    classifier = spacenet.SpaceNetClassifier(encoder=encoder, **QUICK).fit(sounds, labels)
    assert (classifier.predict(sounds) == labels).all()
    assert classifier.predict(np.stack([sound[:500] for sound in sounds])).tolist() == labels.tolist()
