"""Libraries that only some commands need: imported when they are, with a word on how to get them."""

from importlib import import_module
from typing import Any

from spacenet.errors import SettingsError


def require_extra(setting: str, extra: str, *modules: str) -> Any:
    """Import the first of these modules that there is (a library may go by several names)."""
    for name in modules:
        try:
            return import_module(name)
        except ImportError:
            pass
    library = modules[0].split(".")[0]
    raise SettingsError(f'{setting}: this needs {library}, which is not installed: pip install "spacenet-cl[{extra}]"')
