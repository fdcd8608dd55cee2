"""Corrupt a model file in many ways and load each: python corruptions.py FILE TIMES. Prints what came of it as JSON."""

import json
import random
import resource
import sys
import time
from pathlib import Path

import torch

from spacenet.errors import ModelFileError
from spacenet.model.file import load_model, to_bytes


def corrupted(content: bytes, rng: random.Random) -> bytes:
    """The content with something wrong in it: more often at the front, where the header is."""
    end = len(content) if rng.random() < 0.5 else 8 + int.from_bytes(content[:8], "little")
    at = rng.randrange(end if rng.random() < 0.9 else 16)
    kind = rng.randrange(6)
    if kind == 0:  # a flipped bit
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    if kind == 1:  # other bytes
        other = rng.randbytes(rng.randrange(1, 9))
        return content[:at] + other + content[at + len(other) :]
    if kind == 2:  # cut off
        return content[:at]
    if kind == 3:  # something put in
        return content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[at:]
    if kind == 4:  # something left out
        return content[:at] + content[at + rng.randrange(1, 9) :]
    digits = [place for place in range(8, end) if content[place : place + 1].isdigit()]  # another number in the header
    place = rng.choice(digits)
    return content[:place] + str(rng.randrange(10)).encode() + content[place + 1 :]


def main(path: Path, times: int) -> None:
    """Load so many corrupted copies."""
    torch.set_num_threads(1)
    good, rng = path.read_bytes(), random.Random(0)
    load_model(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures: dict[str, float] = {"refused": 0, "identical": 0, "slowest_seconds": 0.0}
    for _ in range(times):
        path.write_bytes(corrupted(good, rng))
        began = time.perf_counter()
        try:
            figures["identical"] += to_bytes(load_model(path)) == good
        except ModelFileError:
            figures["refused"] += 1
        figures["slowest_seconds"] = max(figures["slowest_seconds"], time.perf_counter() - began)
    figures["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
