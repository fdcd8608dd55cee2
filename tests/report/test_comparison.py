"""The texts of a comparison."""

import dataclasses

import pytest

from spacenet.experiments.comparison import MeanStd, Row
from spacenet.report.comparison import cells, notes

ROW = Row(
    method="naive",
    strategy="Bound",
    seeds=1,
    acc=MeanStd(50.0, 0.0),
    bwt=MeanStd(-9.0, 0.0),
    task_il_acc=MeanStd(90.0, 0.0),
    parameters=1,
    extra_bytes=0,
    images=0,
    units_added=0,
    seconds=2.0,
    times=1.0,
)


@pytest.mark.parametrize(("times", "shown"), [(1.5, "1.5 ×"), (None, "2 s")])
def test_times_are_called_multiples_only_where_they_are(times: float | None, shown: str) -> None:
    row = dataclasses.replace(ROW, times=times)
    assert cells(row)[-1] == shown
    assert ("as a multiple of naive's." in notes([row])[0]) == (times is not None)
