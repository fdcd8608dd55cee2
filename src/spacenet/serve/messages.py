"""What the service is asked and what it answers, in the form that its description (/openapi.json) shows."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spacenet.model.model import Label

INPUTS = "Samples as they were when the model was learned: raw values, nested as its input shape or flat."


class Request(BaseModel):
    """A request's JSON body: what is misspelt is an error, and no text is taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(Request):
    """Inputs to name the class of."""

    inputs: Annotated[list[Any], Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0]]])]
    top: Annotated[int, Field(ge=1, description="How many of the likeliest classes to name for each input.")] = 1


class LearnRequest(Request):
    """A task to learn: inputs and their labels."""

    inputs: Annotated[list[Any], Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0], [7.0, 0.0, 1.5]]])]
    labels: Annotated[
        list[Any],
        Field(description="One for each input: all integers, all texts, or all of one other plain type."),
        Field(examples=[["cat", "dog"]]),
    ]


class Prediction(BaseModel):
    """A class, and how likely it is."""

    label: Label
    probability: float


class Predictions(BaseModel):
    """One entry for each input, in the same order."""

    tasks: Annotated[int, Field(description="How many tasks the model knew that made all of these predictions.")]
    predictions: Annotated[
        list[Prediction] | list[list[Prediction]],
        Field(description="The likeliest class of each input; with top above 1, a list of the likeliest."),
    ]


class Job(BaseModel):
    """The last task that was given to learn."""

    model_config = ConfigDict(frozen=True)

    number: Annotated[int, Field(description="Counts up from 1 since the service began.")] = 0
    state: Literal["none", "running", "done", "failed"] = "none"
    samples: int = 0
    epoch: Annotated[int, Field(description="Epochs that are over.")] = 0
    epochs: int = 0
    loss: float | None = None
    accuracy: Annotated[float | None, Field(description="On the samples being learned, in percent.")] = None
    seconds: float = 0.0
    error: Annotated[str | None, Field(description="Why it failed.")] = None


class Health(BaseModel):
    """Whether the service works, and at what."""

    status: Literal["ok"] = "ok"
    version: str
    tasks: int
    classes: Annotated[int, Field(description="How many.")]
    learning: Annotated[Job | None, Field(description="The task that is being learned now.")]


class Description(BaseModel):
    """What the model is."""

    method: str
    input_shape: list[int]
    classes: list[Label]
    tasks: Annotated[list[list[Label]], Field(description="The labels of each task.")]
    space_left: Annotated[int, Field(description="More tasks like the last one that fit (100: at least that many).")]


class Problem(BaseModel):
    """Why a request was refused."""

    error: str
