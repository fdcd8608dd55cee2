"""A studio that is spoken to without a network, and pictures to teach it."""

import io
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spacenet.serve.app import create_app
from spacenet.studio.app import add_studio_routes
from spacenet.studio.session import Session
from tests.serve.support import HOST, Service
from tests.studio.strokes import strokes

SIDE = 200
PNG = {"content-type": "image/png"}


class Studio(Service):
    """A studio and a way to ask it."""

    def __init__(self, app: Any, session: Session) -> None:
        super().__init__(app, session.models)
        self.session = session

    def add(self, label: str, content: bytes) -> Any:
        return self.post("/studio/examples", params={"label": label}, content=content, headers=PNG)

    def teach(self, names: str, seeds: range) -> dict[str, Any]:
        """Teach one class for each letter; returns the state afterwards."""
        for name in names:
            for seed in seeds:
                assert self.add(name, draw(name, seed)).status_code == 201
        return self.done(self.post("/studio/learn"))

    def done(self, answer: Any) -> dict[str, Any]:
        """The state when a job is over."""
        assert answer.status_code == 202, answer.text
        assert wait_until(lambda: self.get("/studio")["job"]["state"] not in ("queued", "running"))
        state = self.get("/studio")
        assert state["job"]["state"] == "done", state["job"]
        found: dict[str, Any] = state
        return found

    def answer(self, content: bytes, **query: Any) -> dict[str, Any]:
        answer = self.post("/studio/answer", params=query, content=content, headers=PNG)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether something holds after a while: a job is over a moment before its folder is removed."""
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def draw(name: str, seed: int, width: int = 14) -> bytes:
    """A shape as the page sends it: black ink on white paper, as PNG."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (SIDE, SIDE), 255)
    for stroke in strokes(name, seed):
        points = [(SIDE * x, SIDE * y) for x, y in stroke]
        ImageDraw.Draw(image).line(points, fill=0, width=width, joint="curve")
    return to_png(image)


def to_png(image: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


@contextmanager
def studio(folder: Path, model_file: Path | None = None, max_bytes: int = 2**22) -> Iterator[Studio]:
    with closing(Session(folder, model_file)) as session, ThreadPoolExecutor(2) as pool:
        app = create_app(session.models, pool, max_bytes, {HOST})
        add_studio_routes(app, session, app.state.context)
        yield Studio(app, session)
