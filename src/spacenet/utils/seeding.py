"""Random numbers that depend on what they are for, not on what was drawn before.

Each purpose (shuffling epoch 3 of task 2, allocating task 4, …) has a generator of its own, derived from the run's
seed. So a run that was resumed, or one among many workers, draws exactly the same numbers.
"""

import zlib

import numpy as np
import torch


def generator(seed: int, purpose: str, *which: int) -> torch.Generator:
    """The generator for one purpose of the run with this seed."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(zlib.crc32(purpose.encode()), *which))
    return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0]))
