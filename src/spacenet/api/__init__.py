"""The functions of `import spacenet`. The command line calls these and nothing else."""

from spacenet.api.evaluation import EvaluationResult, evaluate
from spacenet.api.functions import BEST, VALIDATION, compare, resume, run, sweep, tensorboard_callbacks
from spacenet.api.results import Comparison, RunResult, SeedResults, SweepResult
from spacenet.api.settings import method_names, stream_name
from spacenet.experiments.comparison import REFERENCE, seed_folders
from spacenet.experiments.run import CONFIG
from spacenet.experiments.sweep import Trial

__all__ = [
    "BEST",
    "CONFIG",
    "REFERENCE",
    "VALIDATION",
    "Comparison",
    "EvaluationResult",
    "RunResult",
    "SeedResults",
    "SweepResult",
    "Trial",
    "compare",
    "evaluate",
    "method_names",
    "resume",
    "run",
    "seed_folders",
    "stream_name",
    "sweep",
    "tensorboard_callbacks",
]
