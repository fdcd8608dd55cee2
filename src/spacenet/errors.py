"""Errors whose message is meant for the person at the keyboard: what was wrong, where, and what to do.

The message states the fact. What to do about it depends on where one is: `cli` says it for the command line, `python`
for Python. `str(error)` is the message with Python's remedy; the command line prints `error.for_cli()`.
"""

from typing import Any


class SpacenetError(Exception):
    """Base of every error that spacenet raises on purpose. The command line prints it and exits with `exit_code`."""

    exit_code = 2

    def __init__(self, message: str, *, cli: str = "", python: str = "") -> None:
        super().__init__(message)
        self.message, self.cli, self.python = message, cli, python

    def __str__(self) -> str:
        return f"{self.message} {self.python}".rstrip()

    def for_cli(self) -> str:
        """The message with the command line's remedy."""
        return f"{self.message} {self.cli}".rstrip()


class SettingsError(SpacenetError, ValueError):
    """A setting, or a combination of settings, that cannot work. `setting` is its name in Python, if it is one."""

    def __init__(self, message: str, *, setting: str = "", cli: str = "", python: str = "") -> None:
        super().__init__(message, cli=cli, python=python)
        self.setting = setting

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.setting}: {text}" if self.setting else text

    def for_cli(self) -> str:
        text = super().for_cli()
        return f"--{self.setting.replace('_', '-')}: {text}" if self.setting else text


class MissingExtraError(SettingsError, ImportError):
    """A library that only some features need is not installed."""


class DataError(SpacenetError, ValueError):
    """A data set that is missing, unreadable or not what it should be."""


class RunError(SpacenetError):
    """A run folder that cannot be used the way it was asked for."""


class FileError(SpacenetError):
    """A file or folder that cannot be read or written. Nothing half-written is left."""


class ModelFileError(SpacenetError):
    """A model file that is damaged, not of this kind, or of a newer version. Nothing of it was used."""


class UnreadableModelError(ModelFileError, FileError):
    """A model file that could not be read at that moment: there is none, or no permission, or the disk failed."""


class SpaceFull(SpacenetError):
    """The network has no room for the next task. What was learned before is untouched.

    `layer` is the layer that is full; `result` is what a run had learned by then, if the error comes from one.
    """

    exit_code = 1
    result: Any = None

    def __init__(self, message: str, layer: str, *, cli: str = "", python: str = "") -> None:
        super().__init__(message, cli=cli, python=python)
        self.layer = layer
        self.args = (message, layer)  # so that it can be pickled
