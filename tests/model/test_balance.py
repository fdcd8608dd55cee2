"""Models with balanced classifiers, in files and exports."""

import json
from pathlib import Path

import numpy as np
import pytest

from spacenet.errors import DataError, ModelFileError
from spacenet.methods.shared.balance import Kind
from spacenet.model.export import FORMATS, export_model
from spacenet.model.file import from_bytes, to_bytes
from tests.model.forging import Change, forged, put, replaced
from tests.model.support import blobs, model


@pytest.mark.parametrize("kind", ["weights", "logits"])
def test_a_model_file_and_an_export_have_it(kind: Kind, tmp_path: Path) -> None:
    balanced, plain = model([0, 1], [2, 3], balance=kind), model([0, 1], [2, 3])
    x = blobs([0, 1, 2, 3])[0]
    again = from_bytes(to_bytes(balanced))
    assert to_bytes(again) == to_bytes(balanced)
    np.testing.assert_array_equal(again.predict_proba(x), balanced.predict_proba(x))
    assert not np.allclose(plain.predict_proba(x), balanced.predict_proba(x))
    export_model(balanced, tmp_path / "network.pt2", "torch")
    answer, facts = FORMATS["torch"].load(tmp_path / "network.pt2")
    np.testing.assert_allclose(answer(x)["probabilities"], balanced.predict_proba(x), atol=1e-5)
    assert json.loads(facts["tasks"]) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("extra/balance/mean", 0, np.nan), "mean has values that are not possible"),
        (put("extra/balance/std", 0, -1), "std has values that are not possible"),
        (replaced("extra/balance/std", lambda held: None), "std is missing or of the wrong size"),
        (replaced("extra/balance/mean", lambda held: held[:1]), "mean is missing or of the wrong size"),
    ],
)
def test_a_file_that_cannot_be_is_refused(change: Change, words: str) -> None:
    with pytest.raises(ModelFileError, match=f"the balance of tasks: {words}"):
        from_bytes(forged(model([0, 1], [2, 3], balance="logits"), change))


def test_factors_that_do_not_fit_into_32_bits_are_an_error() -> None:
    large = from_bytes(forged(model([0, 1], [2, 3], balance="logits"), put("extra/balance/std", ..., [1e-5, 3e38])))
    with pytest.raises(DataError, match="no finite scores"):
        large.predict(blobs([0, 1])[0])
