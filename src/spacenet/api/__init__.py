"""The functions of `import spacenet`. The command line calls these and nothing else."""

from spacenet.api.functions import BEST, VALIDATION, compare, resume, run, sweep, tensorboard_callbacks
from spacenet.api.results import Comparison, RunResult, SeedResults, SweepResult
from spacenet.api.settings import method_names
from spacenet.experiments.comparison import REFERENCE, seed_folders
from spacenet.experiments.run import CONFIG
from spacenet.experiments.sweep import Trial

__all__ = [
    "BEST",
    "CONFIG",
    "REFERENCE",
    "VALIDATION",
    "Comparison",
    "RunResult",
    "SeedResults",
    "SweepResult",
    "Trial",
    "compare",
    "method_names",
    "resume",
    "run",
    "seed_folders",
    "sweep",
    "tensorboard_callbacks",
]
