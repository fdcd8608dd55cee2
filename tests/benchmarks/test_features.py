"""What learns on an encoder's features."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from benchmarks import features
from spacenet.data.stream import Stream
from spacenet.encoders.loading import encoder_name
from tests.encoders.support import pictures, tiny


def test_cuts_orders_and_few_samples_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_name(tiny()) or ""
    x, y = np.concatenate([pictures(8, label) for label in range(4)]), np.repeat(np.arange(4), 8)
    asked: list[tuple[int, int | None]] = []

    def stream_of(options: features.Options, each: int, order: int | None = None) -> Stream:
        asked.append((each, order))
        made = Stream.from_arrays(x, y, x, y, classes_per_task=min(each, 2), shuffle_classes=order, name="colors")
        return made.with_encoder(encoder)

    monkeypatch.setattr(features, "_stream", stream_of)
    options = features.Options(encoder=encoder, methods=("ncm", "gaussian"), cuts=(10, 1), few=(3,), seeds=2)
    printed = StringIO()
    figures = features.measure(options, Console(file=printed, width=140))
    rows = {row["what"]: row for row in figures["rows"]}
    assert asked == [(10, None), (1, None), (10, features.ORDER)]
    assert len(rows) == 7
    assert all(0 <= value <= 100 for row in rows.values() for value in row["accuracy"])
    assert rows["gaussian, 10 classes per task"]["accuracy"][0] > 90
    assert len(rows["ncm, 3 images of each class"]["accuracy"]) == 2
    assert "last accuracy %" in printed.getvalue()
