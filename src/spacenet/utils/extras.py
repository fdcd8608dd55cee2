"""Libraries that only some features need: imported when they are needed, with a word on how to install them."""

from importlib import import_module
from typing import Any

from spacenet.errors import MissingExtraError

DISTRIBUTION = "spacenet-cl"  # what the package is called where packages are installed from; it is imported as spacenet


def require_extra(feature: str, extra: str, *modules: str) -> Any:
    """Import the first of these modules that is installed (a library may have several names)."""
    for name in modules:
        try:
            return import_module(name)
        except ImportError:
            pass
    library = modules[0].split(".")[0]
    raise MissingExtraError(f'{feature} needs {library}, which is not installed: pip install "{DISTRIBUTION}[{extra}]"')
