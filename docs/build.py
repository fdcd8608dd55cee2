"""What MkDocs calls while it builds the site: the page of the command line is made from the commands' own help."""

import contextlib
import io
import os
import re
from itertools import takewhile
from typing import Any

from mkdocs.structure.files import File, Files

from spacenet.cli.main import COMMANDS, main, usage

PAGE = "command-line.md"
WIDTH = 100
INTRODUCTION = """# Command line

Every command with its options, as `spacenet COMMAND --help` prints them. The options of `run`, `compare` and `sweep`
depend on the stream and the method: `spacenet run split-mnist --method ewc --help` shows those of EWC with their
defaults on Split MNIST. Here they are shown for `split-digits` and the default method.

```text
{usage}```
"""


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The page in Markdown."""
    parts = [INTRODUCTION.format(usage=usage())]
    parts += [f"## spacenet {name}\n\n{_section(name)}" for name in COMMANDS]
    return "\n".join(parts)


def _section(name: str) -> str:
    """A command's help: its description, and its options under the titles of their groups."""
    first, *rest = help_of(name).strip().split("\n\n")
    description = list(takewhile(lambda part: not part.startswith(" "), rest))
    options = "\n".join("\n\n".join(rest[len(description) :]).splitlines())
    titled = re.sub(r"^ (\S.*?) *\n -+ *$", r"\n\1:", options, flags=re.MULTILINE)
    text = "\n".join(line.rstrip() for line in f"{first}\n{titled}".splitlines() if set(line.strip()) != {"-"})
    text = re.sub(r"\n{3,}", "\n\n", text)
    return "\n\n".join([*description, f"```text\n{text}\n```"]) + "\n"


def help_of(name: str) -> str:
    """What `spacenet NAME --help` prints in a terminal of a fixed width."""
    out, before = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([name, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return out.getvalue()
