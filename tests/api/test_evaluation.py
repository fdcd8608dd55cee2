"""`spacenet.evaluate` takes models and data in any form."""

from pathlib import Path

import numpy as np
import pytest

import spacenet
from spacenet.errors import DataError
from spacenet.model.file import save_model
from spacenet.model.model import Model
from tests.model.support import blobs, model

X, Y = blobs([0, 1, 2, 3], per_class=10)


@pytest.fixture(scope="module")
def learned() -> Model:
    return model([0, 1], [2, 3])


def test_models_and_data_of_every_form_give_the_same(learned: Model, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    save_model(tmp_path / "m.safetensors", learned)
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    expected = spacenet.evaluate(learned, (X, Y))
    assert expected.samples == 40
    frame = pandas.DataFrame(X).assign(kind=Y)
    others = [
        spacenet.evaluate(tmp_path / "m.safetensors", str(tmp_path / "data.npz")),
        spacenet.evaluate(spacenet.load(tmp_path / "m.safetensors"), frame, label="kind"),
        spacenet.evaluate(learned, list(zip(X, Y.tolist(), strict=True))),
    ]
    for each in others:
        assert each.to_plain() == expected.to_plain()
    assert (others[0].model, others[0].data) == ("m.safetensors", "data.npz")


def test_of_each_file_the_test_part_is_used_else_all(learned: Model, tmp_path: Path) -> None:
    np.savez(tmp_path / "parts.npz", x_train=X, y_train=Y, x_test=X[:5], y_test=Y[:5])
    np.savez(tmp_path / "test.npz", x_test=X[:7], y_test=Y[:7])
    np.savez(tmp_path / "all.npz", x=X, y=Y)
    counts = {name: spacenet.evaluate(learned, tmp_path / f"{name}.npz").samples for name in ("parts", "test", "all")}
    assert counts == {"parts": 5, "test": 7, "all": 40}
    assert spacenet.evaluate(learned, [tmp_path / "parts.npz", tmp_path / "all.npz"]).samples == 45


def test_a_result_shows_itself(learned: Model, tmp_path: Path) -> None:
    result = spacenet.evaluate(learned, (X, Y))
    assert "Precision and recall of each class" in repr(result)
    assert result._repr_html_().count("<table>") == len(result.tables())
    assert result.to_frame().loc["2", "task"] == 2
    assert "<h1>model on data</h1>" in result.report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_is_no_model_is_refused(learned: Model) -> None:
    with pytest.raises(DataError, match="int is no model"):
        spacenet.evaluate(3, (X, Y))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="NoneType cannot be read"):
        spacenet.evaluate(learned, None)


def test_values_between_0_and_1_for_a_model_of_bytes_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8), dtype=np.uint8), np.repeat([0, 1], 20)
    classifier = spacenet.SpaceNetClassifier(epochs=1).fit(x, y)
    caplog.clear()  # random labels are hardly learned
    spacenet.evaluate(classifier, (x, y))
    assert not caplog.records
    spacenet.evaluate(classifier, (x / 255, y))
    assert "multiply them by 255" in caplog.text
