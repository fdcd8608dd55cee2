from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.training.hardware import Hardware, find_hardware


@dataclass
class TwoProcesses:
    """Stands for fabric in one of two processes; the other one has the same tensors times ten."""

    global_rank: int
    world_size: int = 2

    def all_reduce(self, tensor: Tensor, reduce_op: str) -> Tensor:
        assert reduce_op == "sum"
        return tensor + 10 * tensor


def test_alone_a_process_takes_the_whole_batch() -> None:
    assert Hardware().share(torch.arange(7))[0].tolist() == list(range(7))
    tensor = torch.ones(2)
    Hardware().add_up([tensor], 5.0)
    assert tensor.tolist() == [1, 1]
    assert Hardware().leads


@pytest.mark.parametrize("size", [4, 5, 128])
def test_processes_share_a_batch_without_overlap(size: int) -> None:
    rows = torch.randperm(size)
    parts = [Hardware(fabric=TwoProcesses(rank)).share(rows)[0] for rank in (0, 1)]
    assert torch.equal(torch.cat(parts), rows)
    assert min(len(part) for part in parts) >= 2


def test_a_batch_too_small_to_share_goes_to_everybody() -> None:
    rows = torch.arange(3)
    assert all(torch.equal(Hardware(fabric=TwoProcesses(rank)).share(rows)[0], rows) for rank in (0, 1))


@pytest.mark.parametrize("size", [1, 3, 4, 5, 128])
def test_the_parts_of_a_batch_add_up_to_it(size: int) -> None:
    rows = torch.arange(size)
    parts = [Hardware(fabric=TwoProcesses(rank)).share(rows)[1] for rank in (0, 1)]
    assert sum(parts) == pytest.approx(1)
    assert Hardware().share(rows)[1] == 1


def test_sums_and_means_over_processes() -> None:
    total, mean = torch.tensor([2.0]), torch.tensor([2.0])
    hardware = Hardware(fabric=TwoProcesses(1))
    hardware.add_up([total], 0.5)
    hardware.average([mean])
    assert total.tolist() == [11.0]
    assert mean.tolist() == [11.0]
    assert not hardware.leads
    assert not hardware.graphs


def test_a_gpu_that_is_not_there() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(SettingsError, match="no GPU"):
        find_hardware(TrainingConfig(device="cuda"))
    assert find_hardware(TrainingConfig(device="auto")).device.type == "cpu"


def test_half_precision_reaches_the_multiplications() -> None:
    with find_hardware(TrainingConfig(precision="bf16", device="cpu")).autocast():
        assert torch.nn.functional.linear(torch.rand(2, 3), torch.rand(4, 3)).dtype == torch.bfloat16
    with Hardware().autocast():
        assert torch.nn.functional.linear(torch.rand(2, 3), torch.rand(4, 3)).dtype == torch.float32
