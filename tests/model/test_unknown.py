"""Samples of unknown classes: in the model, the estimator and an evaluation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from spacenet.config.model import PreprocessingConfig
from spacenet.encoders import loading
from spacenet.errors import SettingsError
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.evaluation import evaluate_model
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from spacenet.model.unknown import auroc, check_rate, unknown_label
from tests.encoders.support import FEATURES, centered, one_color, pictures, tiny, tiny_texts
from tests.model.forging import forged
from tests.model.support import blobs, density_model, model

SMALL: dict[str, Any] = {"hidden": (20, 20), "epochs": 2, "directions": 3}
NEW = blobs(["other"], per_class=20)[0]


@pytest.fixture(scope="module")
def learned() -> Model:
    return density_model("inputs")


@pytest.fixture(scope="module")
def classifier() -> SpaceNetClassifier:
    found = SpaceNetClassifier(**SMALL, unknown=0.05)
    return found.partial_fit(*blobs([0, 1], per_class=60)).partial_fit(*blobs([2, 3], per_class=60))


def test_samples_of_other_classes_are_less_typical_also_after_later_tasks(classifier: SpaceNetClassifier) -> None:
    x, y = blobs([0, 1, 2, 3], per_class=100)
    typicality = classifier.score_samples(x)
    assert typicality.shape == (400,)
    assert (typicality[y < 2] < 0.05).mean() < 0.12
    assert (classifier.score_samples(NEW) < 0.05).mean() > 0.9


def test_predict_names_unknown_samples(classifier: SpaceNetClassifier) -> None:
    x, y = blobs([0, 1, 2, 3], per_class=100)
    found = classifier.predict(np.concatenate([x, NEW]))
    assert found.dtype.kind == "i"
    assert (found[:400] == -1).mean() < 0.12
    assert set(found[400:]) == {-1}
    known = found[:400] != -1
    assert (found[:400][known] == y[known]).mean() > 0.95
    rate = classifier.unknown
    try:
        assert classifier.set_params(unknown=None).predict(NEW).min() >= 0
        wider = classifier.set_params(unknown=0.5).predict(x)
        assert 0.3 < (wider == -1).mean() < 0.6
        named = classifier.set_params(unknown_label=9).predict(x)
        assert (named == 9).tolist() == (wider == -1).tolist()
    finally:
        classifier.set_params(unknown=rate, unknown_label=None)


def test_texts_get_a_text_and_a_class_of_this_name_is_an_error() -> None:
    fitted = SpaceNetClassifier(**SMALL, unknown=0.05).fit(*blobs(["cat", "dog"], per_class=40))
    assert set(fitted.predict(NEW)) == {"unknown"}
    fitted.set_params(unknown_label="dog")
    with pytest.raises(SettingsError, match="'dog' is one of the classes"):
        fitted.predict(NEW)
    assert unknown_label(["cat", 1]) == "unknown"
    assert unknown_label([True, False]) == "unknown"
    with pytest.raises(SettingsError, match="-1 is one of the classes"):
        unknown_label([1, -1])


@pytest.mark.parametrize("rate", [0, 1, -0.1, 5, True, "a", float("nan")])
def test_impossible_rates(rate: object, classifier: SpaceNetClassifier) -> None:
    with pytest.raises(SettingsError, match="between 0 and 1"):
        check_rate(rate)


@pytest.mark.parametrize("value", [1e4, -1e9, 1e15, 1e30])
def test_huge_inputs_are_unknown_also_in_a_single_column(value: float) -> None:
    """A table's values are cut off, which must not hide how large they are."""
    fitted = SpaceNetClassifier(**SMALL, unknown=0.05).fit(*blobs([0, 1], per_class=40))
    x = blobs([0], per_class=8)[0].astype(np.float64)
    x[np.arange(8), np.arange(8)] = value
    assert fitted.score_samples(x).tolist() == [0.0] * 8
    assert set(fitted.predict(x)) == {-1}


def test_values_that_are_cut_off_are_far_only_beyond_a_multiple(learned: Model) -> None:
    preprocessing = PreprocessingConfig(clip=2.0, mean=0.0, std=1.0)
    cut = density_model("inputs").fitted_normalization.fit(np.zeros((2, 8)), preprocessing)
    assert cut.is_far(np.array([[0.0] * 8, [19.0] * 8, [0.0] * 7 + [-21.0]])).tolist() == [False, False, True]
    assert not learned.fitted_normalization.is_far(np.full((1, 8), 1e9)).any()


def test_images_that_are_the_same_everywhere_are_unknown() -> None:
    model = density_model("edges")
    assert not model.typicality(np.linspace(-5, 5, 7)[:, None, None] * np.ones((1, 8, 8))).any()


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_own", {})


def check_one_color(fitted: SpaceNetClassifier) -> None:
    """Images of one color are unknown, and not all others."""
    model, x = fitted.model_, one_color(9)
    assert set(fitted.predict(x)) == {-1}
    assert not model.typicality(x).any()
    assert not model.class_typicality(x).any()
    assert not model.predict_set(x, 0.99).any()
    assert np.isfinite(fitted.predict_proba(x)).all()
    assert not model.typicality(np.zeros((2, FEATURES))).any()
    assert not model.class_typicality(np.zeros((2, FEATURES))).any()
    mixed = model.typicality(np.concatenate([x[:2], pictures(40, 1)]))
    assert (mixed[2:] >= 0.05).mean() > 0.8


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize("pooled", [True, False])
def test_with_an_encoder_images_of_one_color_are_unknown(pooled: bool) -> None:
    fitted = SpaceNetClassifier(encoder=centered(), **SMALL, unknown=0.05, pooled_covariance=pooled)
    for labels in ((0, 1), (2, 3)):
        fitted.partial_fit(np.concatenate([pictures(40, label) for label in labels]), np.repeat(labels, 40))
        check_one_color(fitted)
        almost = fitted.model_.typicality(np.full((1, FEATURES), 1e-12))
        assert almost[0] > 0.05, "zeros are unknown anyway"
    content = to_bytes(fitted.model_)
    assert not from_bytes(content).typicality(one_color(3)).any()


@pytest.mark.usefixtures("_own_cache")
def test_images_of_one_color_may_be_learned() -> None:
    """They are unknown all the same, and other images are still recognized."""
    fitted = SpaceNetClassifier(encoder=tiny(), **SMALL, unknown=0.05)
    x = np.concatenate([pictures(40, 0), one_color(2), pictures(40, 1), one_color(2)])
    fitted.partial_fit(x, np.repeat([0, 1], 42))
    fitted.partial_fit(one_color(4), np.full(4, 5))  # a class of nothing else
    fitted.partial_fit(one_color(3), np.full(3, 1))  # an update of a known one
    check_one_color(fitted)
    test = np.concatenate([pictures(40, 0), pictures(40, 1)])
    assert fitted.set_params(unknown=None).score(test, np.repeat([0, 1], 40)) > 0.9


@pytest.mark.usefixtures("_own_cache")
def test_features_of_zeros_are_unknown_with_other_encoders_too() -> None:
    fitted = SpaceNetClassifier(encoder=tiny_texts(), **SMALL)
    fitted.fit(
        [f"{word} {'re' * (n % 3)} {'o' * (n % 2)}" for word in ("rain", "aioli") for n in range(20)], [0, 1] * 20
    )
    typicality = fitted.model_.typicality(np.array(["fly by", "rain re", "aioli"], object))
    assert typicality[0] == 0
    assert typicality[1:].min() > 0


def test_without_an_encoder_zeros_may_be_typical(learned: Model) -> None:
    zeros = np.zeros((1, 8), np.float32)
    assert learned.typicality(zeros)[0] > 0
    assert not learned.find_empty(zeros).any()


def test_a_model_file_answers_the_same_and_one_without_typical_scores_says_so(learned: Model) -> None:
    x = blobs([0, 1])[0]
    np.testing.assert_array_equal(from_bytes(to_bytes(learned)).typicality(x), learned.typicality(x))
    old = from_bytes(forged(learned, lambda facts, arrays: arrays.__delitem__("extra/typicality/classes")))
    np.testing.assert_array_equal(old.predict_proba(x), learned.predict_proba(x))
    with pytest.raises(SettingsError, match="did not keep what is typical"):
        old.typicality(x)
    old.learn(*blobs(["eel", "fox"]))
    with pytest.raises(SettingsError, match="did not keep what is typical"):
        old.typicality(x)


def test_what_cannot_tell_unknown_classes_says_so() -> None:
    with pytest.raises(SettingsError, match="spacenet cannot tell unknown classes; choose spacenet-density"):
        model([0, 1]).typicality(NEW)
    single = Model(density_model("inputs", components=1, pooled_covariance=True).config, (8,))
    single.learn(*blobs([0, 1], per_class=1))
    with pytest.raises(SettingsError, match="a task had one sample of each class"):
        single.typicality(NEW)


def test_with_a_pooled_covariance_samples_are_as_typical_as_they_are_near_in_direction() -> None:
    pooled = density_model("inputs", components=1, pooled_covariance=True)
    x = blobs([0, 1, "cat", "dog"], per_class=100)[0]
    typicality = pooled.typicality(x)
    assert (typicality < 0.05).mean() < 0.12
    assert (typicality[:200] < 0.05).mean() < 0.15
    assert (pooled.typicality(NEW) < 0.05).mean() > 0.9
    again = from_bytes(to_bytes(pooled))
    np.testing.assert_array_equal(again.typicality(x), typicality)
    np.testing.assert_array_equal(again.predict_proba(x), pooled.predict_proba(x))


def test_the_decision_function_follows_scikit_learn(classifier: SpaceNetClassifier) -> None:
    x = blobs([0, 1, 2, 3])[0]
    found, probabilities = classifier.decision_function(x), classifier.predict_proba(x)
    assert found.shape == (80, 4)
    np.testing.assert_allclose(np.exp(found), probabilities, atol=1e-12)
    again = SpaceNetClassifier(**SMALL).partial_fit(*blobs([0, 1])).partial_fit(*blobs([1, 2]))  # 1 has two outputs
    np.testing.assert_allclose(np.exp(again.decision_function(x)), again.predict_proba(x), atol=1e-12)
    two = SpaceNetClassifier(**SMALL).fit(*blobs([0, 1]))
    assert two.decision_function(x).shape == (80,)
    assert ((two.decision_function(x) > 0) == (two.predict(x) == 1)).all()
    with pytest.raises(NotFittedError):
        SpaceNetClassifier().score_samples(x)


def test_an_evaluation_has_false_alarms_and_what_is_found(classifier: SpaceNetClassifier) -> None:
    x, y = blobs([0, 1, 2, 3, 7], per_class=20)
    plain = evaluate_model(classifier.model_, x, y).to_plain()
    found = evaluate_model(classifier.model_, x, y, unknown=0.05)
    typicality = classifier.score_samples(x)
    assert found.detection is not None
    assert found.detection.rate == 5.0
    assert found.detection.false_alarms == pytest.approx(100 * (typicality[y < 7] < 0.05).mean())
    assert found.detection.found == pytest.approx(100 * (typicality[y == 7] < 0.05).mean())
    assert found.detection.auroc == pytest.approx(roc_auc_score(y < 7, typicality))
    changed = found.to_plain()
    assert changed.pop("detection")["rate"] == 5.0
    assert changed.pop("watch")["samples"] == 100
    assert changed == plain
    only_known = evaluate_model(classifier.model_, x[y < 7], y[y < 7], unknown=0.05).detection
    assert only_known is not None
    assert (only_known.found, only_known.auroc) == (None, None)


def test_sets_have_the_class_as_often_as_wanted_also_after_later_tasks(classifier: SpaceNetClassifier) -> None:
    x, y = blobs([0, 1, 2, 3], per_class=200)
    sizes = []
    for coverage in (0.5, 0.8, 0.9):
        sets = classifier.predict_set(x, coverage)
        assert sets.shape == (800, 4)
        assert sets.dtype == bool
        within = sets[np.arange(len(y)), y]
        assert within.mean() > coverage - 0.06
        assert within[y < 2].mean() > coverage - 0.1
        sizes.append(sets.sum())
    assert sizes == sorted(sizes)
    assert classifier.predict_set(x).sum() == sizes[-1]
    assert not classifier.predict_set(NEW, 0.8).any(1).mean() > 0.1
    impossible: list[Any] = [0, 1, True, "a"]
    for wrong in impossible:
        with pytest.raises(SettingsError, match="between 0 and 1"):
            classifier.predict_set(x, wrong)


def test_a_class_of_several_outputs_is_in_the_set_if_one_of_them_is() -> None:
    again = (
        SpaceNetClassifier(**SMALL).partial_fit(*blobs([0, 1], per_class=60)).partial_fit(*blobs([1, 2], per_class=60))
    )
    x, y = blobs([0, 1, 2], per_class=60)
    sets = again.predict_set(x)
    assert sets.shape == (180, 3)
    assert sets[np.arange(180), y].mean() > 0.8


def test_auroc_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    high, low = rng.integers(0, 9, 50) / 8, rng.integers(0, 7, 30) / 8  # with ties
    expected = roc_auc_score([1] * 50 + [0] * 30, np.concatenate([high, low]))
    assert auroc(high, low) == pytest.approx(expected)
    assert auroc(high, low[:0]) is None


def test_what_is_typical_of_a_removed_class_goes_with_it() -> None:
    classifier = SpaceNetClassifier(**SMALL).fit(*blobs([0, 1, 2], per_class=60))
    table = classifier.model_.method.state()["typicality/classes"].numpy()
    classifier.forget(1)
    left = classifier.model_.method.state()["typicality/classes"].numpy()
    np.testing.assert_array_equal(left, table[[0, 2]])
    content = to_bytes(classifier.model_)
    assert table[0].tobytes() in content
    assert table[1, 5:].tobytes() not in content  # the usual margin is that of the whole task
    x, y = blobs([0, 2], per_class=60)
    assert (classifier.score_samples(x) > 0.05).mean() > 0.8
    assert (classifier.predict(x) == y).mean() > 0.95
