from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spacenet.experiments.run import RunData
from spacenet.report.plots.inputs import inputs_data, inputs_plot
from tests.report.conftest import learn
from tests.report.made_up import complete_run, made_up_model, words_in


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path)


@pytest.fixture
def static_run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path, "static-sparse")


def test_images_count_the_connections_of_each_pixel(run: RunData, static_run: RunData) -> None:
    data = inputs_data(run, static_run)
    assert data is not None
    assert data.methods == ("spacenet", "static-sparse")
    assert data.tasks == (1, 2, 3)
    assert data.classes == ("0, 1", "2, 3", "4, 5")
    for row, each in enumerate((run, static_run)):
        assert each.model is not None
        held = each.model.method.ledger.connections["input-hidden1"]
        expected = np.zeros((3, 4, 4), int)
        for owner, source in zip(held.owner.tolist(), held.source.tolist(), strict=True):
            expected[owner, source // 4, source % 4] += 1
        np.testing.assert_array_equal(data.counts[row], expected)


def test_the_plot_names_both_methods(run: RunData, static_run: RunData) -> None:
    data = inputs_data(run, static_run)
    assert data is not None
    counts = np.ones_like(data.counts)
    counts[0, 0, 0, 0] = 100
    plot = inputs_plot(replace(data, counts=counts))
    assert plot.title == "Half of task 1's connections leave from 1 of 16 pixels, with static-sparse from 8"
    assert {"spacenet", "static-sparse", "task 3"} <= set(words_in(plot).split("\n"))
    alone = inputs_data(run)
    assert alone is not None
    assert "static-sparse" not in words_in(inputs_plot(alone))


def test_inputs_that_are_no_image_are_left_out(run: RunData) -> None:
    assert inputs_data(replace(run, model=None)) is None
    flat = replace(run, model=made_up_model(image=False))
    assert inputs_data(flat) is None
    data = inputs_data(run, beside=flat)
    assert data is not None
    assert data.methods == ("spacenet",)


def test_color_images_of_convolutions_are_left_out() -> None:
    net = {"name": "small-cnn", "hidden": [8, 8, 16]}
    method = {"selected": [4, 4, 8], "reserved": [2, 2, 4], "connections": [0.1]}
    assert inputs_data(learn(shape=(3, 4, 4), net=net, method=method)) is None
