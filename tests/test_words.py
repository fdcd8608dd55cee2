"""Words that the project has left behind do not come back."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PATTERNS = {
    "identifiers": (
        r"\b(Penalised|PartlyFrozen|OwnNorms|TaskParts|LineWatch|BarWatch|LogWatch|steps_alike|silent_outputs|settling|"
        r"kept_of_classes|Thinner|thinner|work_out|DRIVE|FRESH|in_parts|method_named|variant_of|comparison_source|"
        r"TrainingSettings|RunFacts|ComparisonFacts|Desk|Intake|Refusal|option_types|PREDICTOR)\b"
    ),
    "sentences": (
        r"nowhere to be had|keeps no space|known to \d|lines part tasks|speak alike|of so many classes|"
        r"Take back what|[Nn]obody|[Ww]hoever|if the task were told|without being told|task told|there is no '"
    ),
    "flags": r"--silent-outputs|--settling|--whole\b",
}
SKIP = ("CHANGELOG.md", "tests/test_words.py", "benchmarks/results/")


@pytest.mark.parametrize("kind", PATTERNS)
def test_old_words_are_gone(kind: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [n for n in listed.stdout.splitlines() if n.endswith((".py", ".md", ".toml", ".j2", ".ipynb"))]
    if not names:
        pytest.skip("not a git checkout")
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in names
        if not name.startswith(SKIP)
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if re.search(PATTERNS[kind], line)
    ]
    assert not found, "\n".join(found)
