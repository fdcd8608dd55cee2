"""Errors whose message is meant for the person at the keyboard: what was wrong, where, what to do."""


class SpacenetError(Exception):
    """Base of every error that spacenet raises on purpose. The command line prints it and exits with `exit_code`."""

    exit_code = 2


class SettingsError(SpacenetError):
    """A setting, or a combination of settings, that cannot work."""


class DataError(SpacenetError):
    """A data set that is missing, unreadable or not what it should be."""


class RunError(SpacenetError):
    """A run folder that cannot be used the way it was asked for."""


class ModelFileError(SpacenetError):
    """A model file that is damaged, not of this kind, or of a newer version. Nothing of it was used."""


class SpaceFull(SpacenetError):
    """The network has no room for the next task. What was learned before is untouched."""

    exit_code = 1

    def __init__(self, message: str, layer: str) -> None:
        super().__init__(message, layer)
        self.layer = layer

    def __str__(self) -> str:
        return str(self.args[0])
