import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest

from spacenet.api.settings import build_config
from spacenet.cli.options import parse_stream_command, peek
from spacenet.cli.run import GROUPS, RunOptions
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.report.page.cli_command import run_command


def parse(line: str | None) -> RunConfig:
    """The configuration that the command line makes of it."""
    assert line is not None
    name, command, *arguments = shlex.split(line)
    assert (name, command) == ("spacenet", "run")
    options, _, selection, settings = parse_stream_command(RunOptions, arguments, "run", peek(arguments), GROUPS)
    return build_config(**selection, settings=settings).with_seed(options.seed)


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACENET_DATA", raising=False)


@pytest.mark.parametrize(
    ("stream", "method", "over", "preset", "line"),
    [
        ("split-mnist", "spacenet", {}, None, "spacenet run split-mnist --method spacenet"),
        ("icifar-100", "spacenet", {}, "wrn-28-10", "spacenet run icifar-100 --method spacenet --preset wrn-28-10"),
        ("cifar-10-100", "spacenet", {}, "expanded", "spacenet run cifar-10-100 --method spacenet --preset expanded"),
        ("split-mnist", "naive", {"net": {"name": "small-cnn"}, "seed": 7}, None, None),
        ("icifar-100", "static-sparse", {"net": {"name": "mlp"}, "stream": {"tasks": "0,1/2"}}, "wrn-28-10", None),
        (
            "split-digits",
            "spacenet",
            {
                "training": {"learning_rate": 1e-7, "optimizer": "adam"},
                "method": {"connections": [0.5, 1200.0, 60], "unused_first": True},
                "net": {"hidden": [7, 8, 9]},
                "stream": {"data_dir": "/a folder/with 'quotes'"},
                "preprocessing": {"centering": 0.25, "std": 2.0},
            },
            None,
            None,
        ),
    ],
)
def test_the_line_gives_the_same_configuration(
    stream: str, method: str, over: dict[str, Any], preset: str | None, line: str | None
) -> None:
    wanted = preset_config(stream, method, over, preset=preset)
    written = run_command(wanted)
    assert parse(written) == wanted
    assert line in (None, written)


def test_data_from_a_file(tmp_path: Path) -> None:
    wanted = preset_config("x", "spacenet", {"stream": {"data": str(tmp_path / "x.npz")}, "seed": 3})
    assert parse(run_command(wanted)) == wanted
    assert parse(run_command(wanted.with_seed(0))).model.seed == 0
    assert str(run_command(wanted, seeds=2)).endswith("--seeds 2")


def test_data_given_in_python_cannot_be_repeated() -> None:
    config = preset_config("custom", "spacenet")
    assert run_command(config) is None
    assert run_command(dataclasses.replace(config, stream=dataclasses.replace(config.stream, name="mine"))) is None
