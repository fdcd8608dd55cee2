"""What the Open Inference Protocol answers, as the description of the service (/openapi.json) shows it."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from spacenet import __version__

EXTENSIONS = ["binary_tensor_data"]
PLATFORM = "spacenet_safetensors"


class ServerMetadata(BaseModel):
    """What the server is."""

    name: str = "spacenet"
    version: str = __version__
    extensions: list[str] = EXTENSIONS


class Live(BaseModel):
    """Whether the server answers."""

    live: bool = True


class Ready(BaseModel):
    """Whether all models can be used: the status is 503 if not."""

    ready: bool


class ModelReady(BaseModel):
    """Whether a model can be used: the status is 503 if not."""

    name: str
    ready: bool


class Tensor(BaseModel):
    """A tensor that a model takes or gives."""

    name: str
    datatype: str
    shape: Annotated[list[int], Field(description="-1 is any length.")]


class ModelMetadata(BaseModel):
    """What a model takes and gives."""

    name: str
    versions: Annotated[list[str], Field(description="The number of tasks that it has learned.")]
    platform: str = PLATFORM
    inputs: list[Tensor]
    outputs: list[Tensor]


class OutputTensor(Tensor):
    """A tensor of a response."""

    data: list[Any] | None = None
    parameters: dict[str, Any] | None = None


class InferenceResponse(BaseModel):
    """What a model gives."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]
