"""Requests and responses of the service, as its description (/openapi.json) shows them, and its error."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spacenet.model.labels import Label

INPUTS = "Samples as they were when the model was learned: raw values, nested as its input shape or flat."
SPACE = "More tasks like the last one that fit (100: at least that many); null where the method counts no space."
LABELS = "One for each input: all integers, all texts, or all of one other plain type."


class RequestError(Exception):
    """A request that is answered with this reason and HTTP status."""

    def __init__(self, reason: str, status: int = 422) -> None:
        super().__init__(reason)
        self.status = status


class Request(BaseModel):
    """A request's JSON body. Unknown names are errors, and texts are not converted to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(Request):
    """Inputs to classify."""

    inputs: Annotated[list[Any], Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0]]])]
    top: Annotated[int, Field(ge=1, description="How many of the most probable classes to return for each input.")] = 1


class LearnRequest(Request):
    """A task to learn: inputs and their labels."""

    inputs: Annotated[list[Any], Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0], [7.0, 0.0, 1.5]]])]
    labels: Annotated[list[Any], Field(description=LABELS, examples=[["cat", "dog"]])]


class Prediction(BaseModel):
    """A class and its probability."""

    label: Label
    probability: float


class Predictions(BaseModel):
    """One entry for each input, in the same order."""

    tasks: Annotated[int, Field(description="Tasks that the model had learned when it made all of these predictions.")]
    predictions: Annotated[
        list[Prediction] | list[list[Prediction]],
        Field(description="The most probable class of each input; with top above 1, a list of the most probable."),
    ]


class Job(BaseModel):
    """The last training job."""

    model_config = ConfigDict(frozen=True)

    number: Annotated[int, Field(description="Counts up from 1 since the service began.")] = 0
    state: Literal["none", "running", "done", "failed"] = "none"
    samples: int = 0
    epoch: Annotated[int, Field(description="Epochs that are done.")] = 0
    epochs: int = 0
    loss: float | None = None
    accuracy: Annotated[float | None, Field(description="On the samples being learned, in percent.")] = None
    seconds: float = 0.0
    error: Annotated[str | None, Field(description="Why it failed.")] = None


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"] = "ok"
    version: str
    tasks: int
    classes: Annotated[int, Field(description="How many.")]
    learning: Annotated[Job | None, Field(description="The task that is being learned now.")]


class EncoderFacts(BaseModel):
    """The frozen network that turns images into the features that the model takes."""

    name: str
    version: str | None
    checksum: Annotated[str | None, Field(description="The SHA-256 of its weights.")]
    problem: Annotated[str | None, Field(description="Why it cannot be used here; features are taken all the same.")]


class Description(BaseModel):
    """What the model is."""

    method: str
    input_shape: list[int]
    encoder: EncoderFacts | None
    takes: Annotated[list[str], Field(description="The kinds of inputs that it answers.")]
    classes: list[Label]
    tasks: Annotated[list[list[Label]], Field(description="The labels of each task.")]
    space_left: Annotated[int | None, Field(description=SPACE)]


class Problem(BaseModel):
    """Why a request was rejected."""

    error: str
