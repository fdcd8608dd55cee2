"""k-means."""

import torch

from spacenet.methods.density.statistics import find_clusters


def test_heaps_are_found() -> None:
    rng = torch.Generator().manual_seed(1)
    heaps = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    z = torch.cat([heap + torch.randn(40, 2, generator=rng) for heap in heaps])
    found = find_clusters(z, 3, rng).view(3, 40)
    assert [len(row.unique()) for row in found] == [1, 1, 1]
    assert sorted(int(row[0]) for row in found) == [0, 1, 2]


def test_there_are_no_more_than_samples_and_no_gaps() -> None:
    rng = torch.Generator().manual_seed(0)
    assert find_clusters(torch.zeros(1, 2), 5, rng).tolist() == [0]
    alike = find_clusters(torch.zeros(7, 2), 3, rng)
    assert alike.tolist() == [0] * 7
