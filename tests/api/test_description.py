"""`describe` shows the layers of units that a network has."""

import pytest
from torch import nn

import spacenet
from spacenet.errors import SettingsError
from tests.nets.foreign import DenseNet


def test_every_layer_of_a_module_and_what_it_reads() -> None:
    shown = spacenet.describe(DenseNet(), (3, 8, 8))
    rows = shown.tables()[0].rows
    assert [row[0] for row in rows if row[0]] == [layer.name for layer in shown.layers]
    assert ["block1.1.conv1", "8", "4", "conv0", "1×1", "48"] in [list(row) for row in rows]
    assert [row[3] for row in rows[-3:]] == ["conv1", "block2.0.conv2", "block2.1.conv2"]  # concatenated
    assert str(shown).startswith("DenseNet: 61 hidden units")
    assert "<table" in shown._repr_html_()


def test_networks_by_name_take_widths() -> None:
    assert [layer.size for layer in spacenet.describe("mlp", (4,), hidden=(30, 20)).layers] == [4, 30, 20, 0]


def test_a_stream_has_the_shape() -> None:
    stream = spacenet.stream("split-digits")
    assert spacenet.describe("mlp", stream).layers[0].size == 64


def test_the_shape_is_asked_for_where_the_module_does_not_tell_it() -> None:
    with pytest.raises(SettingsError, match="shape of a sample is needed"):
        spacenet.describe(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 2)))
    with pytest.raises(SettingsError, match="shape of a sample is needed"):
        spacenet.describe("small-cnn")


def test_what_is_refused_is_refused_here_too() -> None:
    with pytest.raises(SettingsError, match="LayerNorm"):
        spacenet.describe(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)))
