"""Requests and responses of the service, as its description (/openapi.json) shows them, and its error."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spacenet.model.labels import Label

INPUTS = (
    "Samples as they were when the model was learned: raw values, nested as its input shape or flat; or texts, if its "
    "encoder takes texts."
)
IMAGES = "Image files (PNG, JPEG, WebP, BMP) as base64, in place of inputs."
TOP = "How many of the most probable classes to list; one if it is not given."
UNKNOWN = "Call inputs that are like no class unknown: this fraction of inputs of known classes is called so, too."
COVERAGE = "Give the set of classes that each input may be of; this fraction of inputs has its class in it."
MAX_CLASSES = 100
"""Labels that a job says, and that one edit may name."""
SPACE = "More tasks like the last one that fit (100: at least that many); null where the method counts no space."
LABELS = "One for each input: all integers, all texts, or all of one other plain type."


class RequestError(Exception):
    """A request that is answered with this reason and HTTP status; `retry_after` says when to try again, in seconds."""

    def __init__(self, reason: str, status: int = 422, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.retry_after = status, retry_after


class Request(BaseModel):
    """A request's JSON body. Unknown names are errors, and texts are not converted to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(Request):
    """Inputs to classify, or images."""

    inputs: Annotated[list[Any] | None, Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0]]])] = None
    images: Annotated[list[str] | None, Field(description=IMAGES)] = None
    top: Annotated[int | None, Field(ge=1, description=TOP)] = None
    unknown: Annotated[float | None, Field(description=UNKNOWN)] = None
    coverage: Annotated[float | None, Field(description=COVERAGE)] = None


class LearnRequest(Request):
    """A task to learn: inputs, or images, and their labels."""

    inputs: Annotated[list[Any] | None, Field(description=INPUTS, examples=[[[0.0, 12.5, 255.0], [7.0, 0.0, 1.5]]])] = (
        None
    )
    images: Annotated[list[str] | None, Field(description=IMAGES)] = None
    labels: Annotated[list[Any], Field(description=LABELS, examples=[["cat", "dog"]])]


class Share(BaseModel):
    """A class and its probability."""

    label: Label
    probability: float


class Prediction(BaseModel):
    """What was found for one input."""

    label: Annotated[Label | None, Field(description="The most probable class; null if the input is unknown.")]
    probability: Annotated[float | None, Field(description="Its probability; null if the input is unknown.")]
    top: Annotated[list[Share], Field(description="The most probable classes; empty if the input is unknown.")]
    unknown: Annotated[bool, Field(description="Where asked for: whether the input is like no class.")] = False
    typicality: Annotated[
        float, Field(description="Where unknown is asked for: how many samples of its class are less typical, about.")
    ] = 0.0
    set: Annotated[list[Label], Field(description="Where coverage is asked for: the classes it may be of.")] = []


class Predictions(BaseModel):
    """One entry for each input, in the same order."""

    model: Annotated[str, Field(description="The name of the model.")]
    tasks: Annotated[int, Field(description="Tasks that the model had learned when it made all of these predictions.")]
    predictions: list[Prediction]


Kind = Literal["learn", "rename", "merge", "forget", "undo"]
State = Literal["none", "queued", "running", "done", "failed", "canceled", "lost"]
OF_CLASSES = f"The labels to learn or to edit, the first {MAX_CLASSES} of them. Labels that are forgotten are dropped."


class EditRequest(Request):
    """A change of what the model knows, without data: `rename` a label (to `new`), `merge` labels (`into` one of them
    or another), `forget` a label or several, or `undo` the last change of the model, whatever made it."""

    action: Annotated[Literal["rename", "merge", "forget", "undo"], Field(examples=["rename"])]
    label: Annotated[Label | None, Field(description="The class to rename or to forget.", examples=["cat"])] = None
    labels: Annotated[list[Label] | None, Field(description="The classes to merge or to forget.")] = None
    new: Annotated[Label | None, Field(description="With rename: the new label.", examples=["lion"])] = None
    into: Annotated[Label | None, Field(description="With merge: the label of the new class.")] = None
    keep_undo: Annotated[
        bool, Field(description="With forget: keep the version before, so that it can be undone. It holds the class.")
    ] = False


class Job(BaseModel):
    """A change of the model: samples that are learned, or an edit. The jobs of a model are done one after the other."""

    model_config = ConfigDict(frozen=True)

    number: Annotated[int, Field(ge=0, description="Counts up from 1, also over restarts of the service.")] = 0
    kind: Kind = "learn"
    state: Annotated[
        State,
        Field(description="`lost`: the service ended, and what the job did or would do is not known any more."),
    ] = "none"
    submitted: Annotated[str | None, Field(description="When, in UTC.", max_length=40)] = None
    samples: Annotated[int, Field(ge=0)] = 0
    classes: Annotated[list[Label], Field(description=OF_CLASSES, max_length=MAX_CLASSES)] = []
    into: Annotated[Label | None, Field(description="The new label, of rename and merge.")] = None
    epoch: Annotated[int, Field(ge=0, description="Epochs that are done.")] = 0
    epochs: Annotated[int, Field(ge=0)] = 0
    loss: float | None = None
    accuracy: Annotated[float | None, Field(description="On the samples being learned, in percent.")] = None
    seconds: Annotated[float, Field(description="Since it began, until it ended.")] = 0.0
    error: Annotated[str | None, Field(description="Why it failed, or what is known of a lost one.")] = None

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state not in ("queued", "running")


class JobList(BaseModel):
    """The jobs of a model, the newest first: those that wait or run, and the last ones that are over."""

    jobs: list[Job]


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"] = "ok"
    version: str
    tasks: int
    classes: Annotated[int, Field(description="How many.")]
    learning: Annotated[Job | None, Field(description="The job that is running now.")]


class ModelSummary(BaseModel):
    """A model of the service."""

    name: Annotated[str, Field(description="Its endpoints begin with /models/NAME.")]
    tasks: int
    classes: Annotated[int, Field(description="How many.")]
    learns: Annotated[bool, Field(description="Whether requests may change it.")]


class ModelList(BaseModel):
    """The models of the service. Addresses without a name mean the first."""

    models: list[ModelSummary]


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
    tells_unknown: Annotated[bool, Field(description="Whether it can say that an input is of no known class.")]
    space_left: Annotated[int | None, Field(description=SPACE)]


class ClassCounts(BaseModel):
    """What was counted of the predictions of one class."""

    label: str
    samples: Annotated[int, Field(description="Since the beginning.")]
    recent: Annotated[int, Field(description="The last ones, which the other figures are of.")]
    unknown: Annotated[float | None, Field(description="How many of these are unknown, in percent.")]
    typicality: Annotated[float | None, Field(description="Their mean typicality; 0.5 is usual.")]
    excess: Annotated[float | None, Field(description="Percentage points more than usual that are little typical.")]
    drifted: bool


class WatchCounts(BaseModel):
    """What was counted of predictions since the first service with this rate began."""

    samples: int
    unknown: int
    unknown_rate: Annotated[float | None, Field(description="The same in percent.")]
    recent_unknown_rate: Annotated[float | None, Field(description="Of the last samples of each class, in percent.")]
    wanted_rate: Annotated[float, Field(description="What is usual for inputs of known classes, in percent.")]
    classes: list[ClassCounts]
    drifted: Annotated[list[str], Field(description="The classes whose inputs have changed.")]


class Problem(BaseModel):
    """Why a request was rejected."""

    error: str
