"""A model that has learned nothing yet, and so has no file: what its first task makes it of."""

import json
from dataclasses import dataclass
from pathlib import Path

from spacenet.config.model import ModelConfig
from spacenet.errors import DataError
from spacenet.model.model import Model
from spacenet.utils.files import report_os_errors, save_text


@dataclass(frozen=True)
class Blank:
    """The settings of a model and the shape of its inputs."""

    config: ModelConfig
    input_shape: tuple[int, ...]

    def new_model(self) -> Model:
        return Model(self.config, self.input_shape)

    def save(self, path: Path) -> None:
        save_text(path, json.dumps({"config": self.config.to_plain(), "input_shape": self.input_shape}))

    @classmethod
    def load(cls, path: Path) -> "Blank":
        """What was saved, with its settings checked."""
        with report_os_errors(path, "read"):
            content = path.read_text(encoding="utf-8")
        try:
            found = json.loads(content)
            shape = tuple(int(size) for size in found["input_shape"])
            return cls(ModelConfig.from_plain(found["config"]), shape)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{path} does not describe a model ({error})") from error
