from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spacenet.experiments.run import RunData
from spacenet.report.plots import inputs
from spacenet.report.plots.inputs import connections_per_pixel, inputs_plot
from tests.report.conftest import learn
from tests.report.made_up import complete_run, made_up_model, words_in


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path)


@pytest.fixture
def static_run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path, "static-sparse")


def test_images_count_the_connections_of_each_pixel(run: RunData) -> None:
    assert run.model is not None
    held = run.model.method.ledger.connections["input-hidden1"]
    expected = np.zeros((3, 4, 4), int)
    for owner, source in zip(held.owner.tolist(), held.source.tolist(), strict=True):
        expected[owner, source // 4, source % 4] += 1
    counts = connections_per_pixel(run)
    assert counts is not None
    np.testing.assert_array_equal(counts, expected)


def test_the_plot_names_both_methods(run: RunData, static_run: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = inputs_plot(run)
    assert alone is not None
    assert "static-sparse" not in words_in(alone)
    even = np.ones((3, 4, 4), int)
    uneven = even.copy()
    uneven[0, 0, 0] = 100
    monkeypatch.setattr(inputs, "connections_per_pixel", lambda each: uneven if each is run else even)
    plot = inputs_plot(run, static_run)
    assert plot is not None
    assert plot.title == "Half of task 1's connections leave from 1 of 16 pixels, with static-sparse from 8"
    words = set(words_in(plot).split("\n"))
    assert {"spacenet", "static-sparse", "task 1", "(0, 1)", "task 3", "(4, 5)"} <= words


def test_inputs_that_are_no_image_are_left_out(run: RunData) -> None:
    assert inputs_plot(replace(run, model=None)) is None
    flat = replace(run, model=made_up_model(image=False))
    assert inputs_plot(flat) is None
    with_flat, alone = inputs_plot(run, beside=flat), inputs_plot(run)
    assert with_flat is not None
    assert alone is not None
    assert with_flat.text == alone.text


def test_color_images_of_convolutions_are_left_out() -> None:
    net = {"name": "small-cnn", "hidden": [8, 8, 16]}
    method = {"selected": [4, 4, 8], "reserved": [2, 2, 4], "connections": [0.1]}
    assert inputs_plot(learn(shape=(3, 4, 4), net=net, method=method)) is None
