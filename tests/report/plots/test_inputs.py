from dataclasses import replace
from pathlib import Path

import numpy as np

from spacenet.report.plots.inputs import inputs_data, inputs_picture
from spacenet.report.run_data import RunFacts
from tests.report.plots.space_support import run_facts, words_in


def test_images_count_the_connections_of_each_pixel(spacenet_run: RunFacts, static_run: RunFacts) -> None:
    data = inputs_data(spacenet_run, static_run)
    assert data is not None
    assert data.methods == ("spacenet", "static-sparse")
    assert data.tasks == (1, 2, 3)
    assert data.classes == ("0, 1", "2, 3", "4, 5")
    for row, facts in enumerate((spacenet_run, static_run)):
        assert facts.model is not None
        held = facts.model.method.ledger.connections["input-hidden1"]
        expected = np.zeros((3, 4, 4), int)
        for owner, source in zip(held.owner.tolist(), held.source.tolist(), strict=True):
            expected[owner, source // 4, source % 4] += 1
        np.testing.assert_array_equal(data.counts[row], expected)


def test_the_picture_names_both_methods(spacenet_run: RunFacts, static_run: RunFacts) -> None:
    data = inputs_data(spacenet_run, static_run)
    assert data is not None
    counts = np.ones_like(data.counts)
    counts[0, 0, 0, 0] = 100
    plot = inputs_picture(replace(data, counts=counts))
    assert plot.title == "Half of task 1's connections start at 1 of 16 pixels; with static-sparse at 8"
    assert {"spacenet", "static-sparse", "task 3"} <= set(words_in(plot).split("\n"))
    alone = inputs_data(spacenet_run)
    assert alone is not None
    assert "static-sparse" not in words_in(inputs_picture(alone))


def test_what_is_no_image_is_left_out(spacenet_run: RunFacts, tmp_path: Path) -> None:
    assert inputs_data(replace(spacenet_run, model=None)) is None
    flat = run_facts(tmp_path, shape=(16,))
    assert inputs_data(flat) is None
    data = inputs_data(spacenet_run, beside=flat)
    assert data is not None
    assert data.methods == ("spacenet",)


def test_colour_images_of_convolutions_are_left_out(tmp_path: Path) -> None:
    net = {"net": "small-cnn", "hidden": [8, 8, 16]}
    options = {"selected": [4, 4, 8], "reserved": [2, 2, 4], "connections": [0.1]}
    assert inputs_data(run_facts(tmp_path, shape=(3, 4, 4), net=net, options=options)) is None
