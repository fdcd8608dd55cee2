"""A job that waits or runs: a private folder beside the model with its description and its samples.

The folder outlives the process, so that the next one can go on with the job. The description is there from when the job
is accepted until what became of it is noted, and a folder without one is of no use any more.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from spacenet.data.preprocessing import Array
from spacenet.serve.blank import Blank
from spacenet.serve.folders import PrivateFolder, remove_leftovers
from spacenet.serve.messages import Job
from spacenet.serve.store import Signature
from spacenet.utils.files import atomic_write, report_os_errors, save_text

DESCRIPTION = "job.json"
MAX_BYTES = 1024**2
"""Of a description that is read."""
log = logging.getLogger("spacenet")


class Description(BaseModel):
    """What the folder of a job says about it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    job: Job
    keep_undo: bool = False
    attempts: Annotated[int, Field(ge=0)] = 0
    """How often it was begun without being ended in an orderly way."""
    begun_from: tuple[int, int, int] | None = None
    """The signature of the model's file when it was begun last."""


class QueuedJob:
    """The description and the samples of a job, in a folder of this process."""

    def __init__(self, folder: PrivateFolder, description: Description) -> None:
        self.folder, self.description = folder, description
        self.data, self.new, self.blank = (folder.path / name for name in ("data.npz", "new.safetensors", "blank.json"))

    @property
    def number(self) -> int:
        return self.description.job.number

    @classmethod
    def make(
        cls,
        parent: Path,
        prefix: str,
        description: Description,
        samples: tuple[Array, Array] | None = None,
        blank: Blank | None = None,
    ) -> "QueuedJob":
        """A new folder with all that the job needs; nothing stays if it cannot be written."""
        with report_os_errors(parent / prefix, "made"):
            made = cls(PrivateFolder.make(parent, prefix), description)
        try:
            if samples is not None:
                with atomic_write(made.data) as beside, beside.open("wb") as file:
                    np.savez(file, x=samples[0], y=samples[1])
            if blank is not None:
                blank.save(made.blank)
            made._describe()
        except BaseException:
            made.remove()
            raise
        return made

    def begin(self, signature: Signature | None) -> None:
        """Note that it is being done now, with the model file as it is."""
        attempts = self.description.attempts + 1
        self.description = self.description.model_copy(update={"attempts": attempts, "begun_from": signature})
        self._describe()

    def release(self, begun: bool) -> None:
        """Leave it to the next process; `begun` if this one has begun it."""
        attempts = max(0, self.description.attempts - begun)
        self.description = self.description.model_copy(update={"attempts": attempts, "begun_from": None})
        with suppress(OSError):
            self.new.unlink(missing_ok=True)
        self._describe()
        self.folder.release()

    def remove(self) -> None:
        with suppress(OSError):  # first: a part of the folder that is left must not be taken for a job
            (self.folder.path / DESCRIPTION).unlink(missing_ok=True)
        self.folder.remove()

    def _describe(self) -> None:
        save_text(self.folder.path / DESCRIPTION, json.dumps(self.description.model_dump()))


def claim_jobs(parent: Path, prefix: str) -> Iterator[QueuedJob]:
    """The jobs of processes that are no more, each in its folder, which now belongs to this process. What else they
    left is removed."""
    for path in sorted(parent.iterdir()):
        if path.name.startswith(prefix) and (folder := PrivateFolder.claim(path)):
            if description := _read(path):
                yield QueuedJob(folder, description)
            else:
                folder.remove()
    remove_leftovers(parent, prefix)


def numbers_in(parent: Path, prefix: str) -> set[int]:
    """The numbers of all jobs that have a folder, of this process or another."""
    found = (_read(path) for path in parent.iterdir() if path.name.startswith(prefix))
    return {description.job.number for description in found if description}


def _read(folder: Path) -> Description | None:
    """The description in a folder, if there is one that can be used."""
    path = folder / DESCRIPTION
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError("too large")
        return Description.model_validate_json(content, strict=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        log.warning("spacenet: warning: %s does not describe a job and is ignored", path)
        return None
