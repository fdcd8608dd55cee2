"""Run every page as it is written: all its blocks, one after the other, in an empty folder.

python -m tests.campaigns.pages
"""

import re
import socket
import sys
import time
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.warm import run_script

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/tutorial-researcher.md",
    "docs/tutorial-engineer.md",
    "docs/tutorial-photos.md",
    "docs/tutorial-method.md",
    "docs/own-data.md",
    "docs/own-net.md",
    "docs/encoders.md",
    "docs/experts.md",
    "docs/deploy.md",
    "docs/reports.md",
    "docs/api.md",
)
"""All pages with blocks of bash or Python, but docs/own-method.md: tests/methods/test_outside.py takes its method."""
PORT = "8321"
QUICK = {
    "seeds=2": "seeds=1",
    "--seeds 2": "--seeds 1",
    "trials=3": "trials=1",
    "--trials 3": "--trials 1",
    "--epochs 40": "--epochs 5",
    "--out shapes.safetensors": "--out shapes.safetensors --epochs 20",
    "--out fruit.safetensors": "--out fruit.safetensors --epochs 20",
    "SpaceNetClassifier(expected_tasks=4)": "SpaceNetClassifier(expected_tasks=4, epochs=8)",
    "--out runs/methods\n": "--out runs/methods --no-report\n",
    "--out runs/methods --format latex": "--out runs/methods --format latex --no-report",
    "--out runs/words": "--out runs/words --no-report",
    "--out runs/first\n": "--out runs/first --epochs 2 --no-report\n",
    '"spacenet", seed=0)': '"spacenet", seed=0, epochs=2)',
    "seed=0, epochs=5": "seed=0, epochs=2",
    "spacenet report runs/one --figures": "spacenet report runs/two --figures",
    "--methods naive,ewc,spacenet,joint": "--methods naive,joint --tasks 0,1/2,3 --set epochs=2",
    '["naive", "ewc", "spacenet", "joint"]': '["naive", "joint"], epochs=2',
    '["naive", Careful, "spacenet", "joint"]': '["naive", Careful]',
    "spacenet sweep split-digits": "spacenet sweep split-digits --tasks 0,1/2,3 --set epochs=2",
    "--shuffle-classes 1993": "--shuffle-classes 1993 --set epochs=2",
    "config=search.best.to_plain())": "config=search.best.to_plain(), epochs=2)",
    "--figures runs/figures": "--out runs/page.html",
    "--epochs 2 --out runs/one": "--epochs 2 --out runs/one --no-report --tasks 0,1/2,3",
    "--epochs 2 --out runs/two": "--epochs 2 --out runs/two --tasks 0,1/2,3",
}
"""What the test suite runs instead, to save time."""


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def blocks_of(page: str) -> list[tuple[str, str]]:
    """The language and the content of each block that can be run."""
    return re.findall(r"```(bash|python)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def script(page: str, quick: bool) -> str:
    """The blocks as one shell script. Python blocks are handed to Python, those that follow each other together."""
    blocks = blocks_of(page)
    parts = [(kind, "".join(code for _, code in group)) for kind, group in groupby(blocks, lambda block: block[0])]
    code = "\n".join(f"python - <<'END'\n{code}END\n" if kind == "python" else code for kind, code in parts)
    for long, short in QUICK.items() if quick else ():
        code = code.replace(long, short)
    return "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + code


def run_page(page: str, folder: Path, *, quick: bool) -> str:
    """What the page's commands print."""
    code, out, err = run_script(script(page, quick).replace(PORT, free_port()), folder, timeout=280 if quick else 900)
    assert code == 0, err + out
    return out


def main() -> int:
    for page in PAGES:
        begun = time.monotonic()
        with TemporaryDirectory() as folder:
            run_page(page, Path(folder), quick=False)
        print(f"{page}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
