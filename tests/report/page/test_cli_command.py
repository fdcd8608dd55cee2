import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest

from spacenet.cli.run import _parse
from spacenet.config.presets import preset
from spacenet.config.run import RunConfig
from spacenet.report.page.cli_command import run_command
from tests.experiments.support import config


def again(line: str) -> RunConfig:
    """The config that the command line makes of it."""
    name, command, *arguments = shlex.split(line)
    assert (name, command) == ("spacenet", "run")
    return _parse(arguments)[2]


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACENET_DATA", raising=False)


@pytest.mark.parametrize(
    ("stream", "method", "over", "variant", "line"),
    [
        ("split-mnist", "spacenet", {}, None, "spacenet run split-mnist --method spacenet"),
        ("icifar-100", "spacenet", {}, "wrn-28-10", "spacenet run icifar-100 --method spacenet --net wrn-28-10"),
        ("cifar-10-100", "spacenet", {}, "expanded", "spacenet run cifar-10-100 --method spacenet --preset expanded"),
        ("split-mnist", "naive", {"net": {"net": "small-cnn"}, "seed": 7}, None, None),
        ("icifar-100", "static-sparse", {"net": {"net": "mlp"}, "data": {"tasks": "0,1/2"}}, "wrn-28-10", None),
        (
            "split-digits",
            "spacenet",
            {
                "training": {"learning_rate": 1e-7, "optimizer": "adam"},
                "options": {"connections": [0.5, 1200.0, 60], "unused_first": True},
                "net": {"hidden": [7, 8, 9]},
                "data": {"data_dir": "/a folder/with 'quotes'"},
            },
            None,
            None,
        ),
    ],
)
def test_the_line_gives_the_same_config(
    stream: str, method: str, over: dict[str, Any], preset_name: str | None, line: str | None
) -> None:
    wanted = preset(stream, method, over, preset_name=preset_name)
    written = run_command(wanted)
    assert again(written) == wanted
    assert line in (None, written)


def test_of_ones_own_data(tmp_path: Path) -> None:
    wanted = config(tmp_path, seed=3)
    assert again(run_command(wanted)) == wanted
    assert again(run_command(dataclasses.replace(wanted, seed=0))).seed == 0
    assert run_command(wanted, seeds=2).endswith("--seeds 2")
