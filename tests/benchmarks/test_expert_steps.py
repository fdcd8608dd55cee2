"""The benchmark of experts' steps at tiny sizes, on the processor: that it measures what it says."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks.expert_steps import EXPERT, SAME_WORK, UPRIGHT, main
from benchmarks.stepping import new_method
from benchmarks.workload import stream_of
from spacenet.config.presets import preset_config
from spacenet.methods.shared.expert_settings import ExpertSettings
from spacenet.methods.spacenet_experts import SpaceNetExperts


def test_first_and_last_task_are_measured_beside_the_dense_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "steps.json"
    options = ["--tiny", "--classes-per-task", "50", "--seconds-per-cell", "0.01", "--json", str(path)]
    assert main(options) == 0
    steps = json.loads(path.read_text())["steps"]
    assert [(each["tasks"], each["last"]) for each in steps] == [(2, False), (2, True)]
    assert all(set(each["ms"]) == {EXPERT, SAME_WORK, UPRIGHT} for each in steps)
    assert "A training step beside the dense WRN-28-10" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "there is no GPU here" in capsys.readouterr().err


def test_experts_are_as_small_as_the_number_of_tasks_demands() -> None:
    config = preset_config("split-digits", "spacenet-experts", {"stream": {"classes_per_task": 1}})
    settings = new_method(SpaceNetExperts, config, stream_of(config)).settings
    assert isinstance(settings, ExpertSettings)
    assert settings.expected_tasks == 10
