"""Requests and responses of the studio, as the description of the service shows them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from spacenet.model.labels import Label
from spacenet.serve.messages import SPACE, Job, Request
from spacenet.studio.pictures import Kind


class StartRequest(Request):
    """Begin with a new model."""

    start: Annotated[Literal["drawings", "photos"], Field(description="What it is to learn.")]


class Waiting(BaseModel):
    """The examples of a class that are not learned yet."""

    label: str
    examples: Annotated[list[int], Field(description="Their numbers; GET /studio/examples/NUMBER shows one.")]


class Added(BaseModel):
    """An example that was added."""

    number: int
    label: str
    count: Annotated[int, Field(description="Examples of its class that wait to be learned.")]


class Measured(BaseModel):
    """Of the examples of a class that were set aside, how many are right."""

    right: int
    of: int


class KnownClass(BaseModel):
    """A class that the model has learned."""

    label: Label
    task: int
    before: Annotated[Measured | None, Field(description="Before the last task.")]
    after: Annotated[Measured | None, Field(description="Now.")]


class Layer(BaseModel):
    """The units of a hidden layer, by whose they are."""

    name: str
    units: int
    reserved: Annotated[list[int], Field(description="Of each task, for good.")]
    shared: int
    unused: int


class State(BaseModel):
    """Everything that the page shows."""

    kind: Kind
    started: Annotated[bool, Field(description="Whether a model was chosen.")]
    file: Annotated[str | None, Field(description="Where the model is kept; none if it ends with the studio.")]
    classes: list[KnownClass]
    tasks: int
    space_left: Annotated[int | None, Field(description=SPACE)]
    layers: Annotated[list[Layer], Field(description="None where the method does not divide a network among tasks.")]
    examples: list[Waiting]
    can_undo: bool
    tells_unknown: bool
    photo_problem: Annotated[str | None, Field(description="Why photos cannot be learned here.")]
    job: Annotated[Job | None, Field(description="The job that waits or runs, or the last one.")]


class AnsweredClass(BaseModel):
    """What the model makes of a picture, for one class."""

    label: Label
    probability: float
    typicality: Annotated[float | None, Field(description="The fraction of the class's samples that are less typical.")]
    task: int


class Answer(BaseModel):
    """What the model makes of a picture."""

    classes: Annotated[list[AnsweredClass], Field(description="The most probable first.")]
    tasks: Annotated[list[float], Field(description="The probability of each task's classes together.")]
    typicality: float | None
    rate: Annotated[float, Field(description="The typicality below which a picture is unknown.")]
    unknown: bool | None
    seen: Annotated[str, Field(description="The picture as it was prepared, as PNG in base64.")]
