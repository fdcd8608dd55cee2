"""Every `spacenet …` in README and docs is a command that exists, with options that exist. None of them is run."""

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tyro

from spacenet.cli import fit
from spacenet.cli.main import COMMANDS, main
from tests.campaigns.pages import ROOT

MADE = {"docs/results.md", "docs/density.md", "docs/methods.md"}
"""Their commands are rows of tables; tests/benchmarks/test_results.py has them."""
PLACEHOLDERS = re.compile(r"…|\b(COMMAND|STREAM|NAME|DIR|FILE|MODEL|DATA|N)\b")
COMMENT = re.compile(r"\s{2,}(?=\S)|\s+[|#&]|;")
"""What ends a command in a block: a remark after several blanks, a pipe, a comment."""


class Understood(Exception):
    """The command was parsed."""


def commands() -> dict[str, str]:
    """Each command of the pages, and a page that has it."""
    found: dict[str, str] = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        page = str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
        shown = [re.findall(rf"^{'[$] ' * ('$ ' in block)}spacenet (.*)$", block, re.MULTILINE) for block in blocks]
        lines = [line for block in shown for line in block]
        inline = re.findall(r"`spacenet ([^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL).replace("\n", " "))
        for line in (*lines, *(inline if page not in MADE else ())):
            command = COMMENT.split(line.strip())[0]
            if " " in command and not PLACEHOLDERS.search(command):
                found.setdefault(command.replace("anchored", "ewc"), page)  # a method that a page defines
    return found


def shape(command: str) -> tuple[str, ...]:
    """What decides how a command is parsed: its name, its method and its options, without their values."""
    words = command.split()
    method = words[words.index("--method") + 1] if "--method" in words else ""
    return (words[0], method, *sorted(word for word in words if word.startswith("--")))


@pytest.fixture
def _only_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every command end when its arguments are parsed."""

    def stop_after(owner: Any, name: str) -> None:
        parse = getattr(owner, name)

        def parse_and_stop(*arguments: Any, **options: Any) -> None:
            parse(*arguments, **options)
            raise Understood

        monkeypatch.setattr(owner, name, parse_and_stop)

    for command in COMMANDS:
        module = import_module(f"spacenet.cli.{command}")
        for name in ("parse", "parse_groups", "parse_stream_command"):
            if hasattr(module, name):
                stop_after(module, name)
    stop_after(fit, "_parse")
    stop_after(tyro.extras, "subcommand_cli_from_dict")
    monkeypatch.chdir(tmp_path)
    for file in ("runs/first/config.toml", "runs/search/best.toml", "mine.toml"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("")


@pytest.mark.usefixtures("_only_parsed")
def test_every_command_of_the_pages_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    seen = {shape(command): (command, page) for command, page in commands().items()}
    assert len(seen) > 30
    wrong = []
    for command, page in seen.values():
        if problem := _problem(shlex.split(command), capsys):
            wrong.append(f"{page}: spacenet {command}: {problem}")
    assert not wrong, "\n".join(wrong)


def _problem(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said against a command; nothing if it is understood."""
    try:
        code = main(words)
    except Understood:
        return ""
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return "" if code == 0 and {"--help", "--version"} & {*words} else (said.err or said.out)[-600:]


@pytest.mark.usefixtures("_only_parsed")
@pytest.mark.parametrize("words", [["fly"], ["run", "--no-such-option"], ["learn", "model.safetensors"]])
def test_what_does_not_exist_is_found(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _problem(words, capsys)
