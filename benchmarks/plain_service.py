"""What `spacenet serve` is compared with: the service that one would write for an exported model, in a few lines.

`python -m benchmarks.plain_service MODEL.onnx PORT`. It knows nothing of spacenet.
"""

import json
import sys

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class PredictRequest(BaseModel):
    """Samples, each as one list."""

    inputs: list[list[float]]


class Prediction(BaseModel):
    """The most probable class of a sample."""

    label: int | str
    probability: float


class Predictions(BaseModel):
    """One for each sample."""

    predictions: list[Prediction]


def create_app(path: str) -> FastAPI:
    """A service of an ONNX file."""
    app, options = FastAPI(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # as `spacenet serve` has
    session = onnxruntime.InferenceSession(path, options)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    shape = session.get_inputs()[0].shape[1:]

    @app.post("/predict")
    async def predict(request: PredictRequest) -> Predictions:
        x = np.array(request.inputs, np.float32).reshape(-1, *shape)
        (found,) = session.run(None, {"input": x})
        return Predictions(
            predictions=[Prediction(label=classes[row.argmax()], probability=row.max()) for row in found]
        )

    return app


def main(path: str, port: str) -> None:
    uvicorn.run(create_app(path), host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
