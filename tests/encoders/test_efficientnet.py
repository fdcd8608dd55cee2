from collections.abc import Iterator

import pytest
import torch

from spacenet.encoders import loading
from spacenet.encoders.efficientnet import LITES, Lite, load_lite
from spacenet.encoders.loading import load_encoder
from tests.encoders.support import one_color, pictures


@pytest.fixture(params=list(LITES.values()), ids=list(LITES))
def lite(request: pytest.FixtureRequest) -> Iterator[Lite]:
    pytest.importorskip(request.param.package, reason="it needs the extra 'encoders'")
    yield request.param
    loading._load.cache_clear()


def test_the_published_weights_give_features(lite: Lite) -> None:
    encoder = load_encoder(lite.name)
    assert (encoder.version, encoder.shape) == ("0.1.0", (3, lite.size, lite.size))
    assert encoder.checksum == lite.file
    features = encoder.encode(encoder.prepare(pictures(1)))
    assert features.shape == (1, encoder.features)
    assert float(features[:, :1280].min()) >= 0  # of the last feature maps, after their activation
    assert 0.3 < float(features[:, :1280].std()) < 1.0
    assert load_encoder(lite.name, encoder.checksum) is encoder
    assert not encoder.encode(encoder.prepare(one_color(2))).any()


def test_the_earlier_blocks_are_the_last_ones_of_their_size(lite: Lite) -> None:
    """The later one is followed by one block, which only widens."""
    network = load_lite(lite).network.inner  # type: ignore[attr-defined]
    x, sides, widths = torch.zeros(1, 3, lite.size, lite.size), [], []
    x = network._conv_stem(x)
    for block in network._blocks:
        x = block(x)
        widths.append(x.shape[1])
        sides.append(x.shape[-1])
    sixteenth, thirty_second = lite.blocks
    assert sides[sixteenth] == -(-lite.size // 16) > sides[sixteenth + 1]
    assert sides[thirty_second] == -(-lite.size // 32)
    assert thirty_second == len(sides) - 2
    assert 1280 + widths[sixteenth] + widths[thirty_second] == lite.features


def test_weights_from_elsewhere_are_known_as_the_published_ones(lite: Lite) -> None:
    published = load_lite(lite)
    again = load_lite(lite, published.network.inner.state_dict())  # type: ignore[attr-defined]
    assert (again.checksum, again.version) == (lite.file, "")
