"""Folders that commands choose where none is given."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacenet.config.settings import to_plain


def default_folder(base: str, name: str, settings: Mapping[str, Any]) -> Path:
    """BASE/NAME, with the cut of the stream and, where there are other settings, eight digits that stand for them.

    So the same command finds its folder again, and one with other settings gets a folder of its own.
    """
    rest = {key: value for key, value in settings.items() if value not in (None, {}, ()) and key != "data_dir"}
    files = [value.stem for value in rest.values() if isinstance(value, Path)]
    parts = [re.sub(r"[^\w.-]+", "-", files[0])] if files else []
    if (count := rest.pop("first_classes", None)) is not None:
        parts.append(f"{count}-first")
    if (count := rest.pop("classes_per_task", None)) is not None:
        parts.append(f"{count}-per-task")
    if (seed := rest.pop("shuffle_classes", None)) is not None:
        parts.append(f"shuffled-{seed}")
    if rest:
        content = json.dumps(to_plain(rest), sort_keys=True, default=str)
        parts.append(hashlib.sha256(content.encode()).hexdigest()[:8])
    return Path(base) / "-".join([name, *parts])
