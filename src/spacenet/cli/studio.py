"""`spacenet studio [MODEL]`: a page in the browser on which a person teaches a model."""

import os
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from annotated_types import Ge, Le

from spacenet.cli.forms import parse
from spacenet.cli.serve import MOST_THREADS, open_listener
from spacenet.utils.extras import require_extra

HOST = "127.0.0.1"
MAX_REQUEST = 64 * 1024**2
"""Bytes: a model file with the weights of its encoder."""
FOLDER = "spacenet-studio-"
MODEL_HELP = (
    "A model file to go on with, which changes with each task; or a file that is not there yet, for a new model. "
    "Without one, the model ends with the studio unless it is downloaded."
)


@dataclass(frozen=True)
class StudioOptions:
    """Teach a model in the browser: draw or drop examples, let it learn, try it, and see what it keeps.

    The page is served on this computer only, and nothing leaves it. Ctrl-C ends it.
    """

    model: Annotated[
        tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="MODEL", help=MODEL_HELP, help_behavior_hint="")
    ] = None
    port: Annotated[int, Ge(0), Le(65535)] = 0
    """Port of the page; 0 takes a free one."""
    no_browser: bool = False
    """Only print the address of the page."""


def studio(arguments: list[str]) -> int:
    options = parse(StudioOptions, arguments, "studio")
    for name in ("uvicorn", "fastapi", "PIL"):
        require_extra("studio", "studio", name)
    from spacenet.serve.app import create_app
    from spacenet.serve.hosts import own_hosts
    from spacenet.serve.metrics import show_connections
    from spacenet.serve.server import Server, end_on_signals
    from spacenet.studio.app import add_studio_routes
    from spacenet.studio.session import Session

    torch.set_num_threads(1)
    with (
        suppress(KeyboardInterrupt),  # a signal before the server runs
        end_on_signals() as ending,
        closing(open_listener(HOST, options.port)) as listener,
        _private_folder() as folder,
        closing(Session(folder, options.model and options.model.expanduser())) as session,
        ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1), "studio", torch.set_num_threads, (1,)) as pool,
    ):
        port = listener.getsockname()[1]
        app = create_app(session.models, pool, MAX_REQUEST, own_hosts(HOST, port))
        add_studio_routes(app, session, app.state.context)
        server = Server(app)
        ending.server = server
        show_connections(app, server.guard)
        address = f"http://{HOST}:{port}"
        print(f"The studio is at {address} (on this computer only; Ctrl-C ends it)", flush=True)
        if not options.no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.run(sockets=[listener])
    print("stopped", flush=True)
    return 0


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for models without a file of their own, removed in the end; so is what a killed studio left."""
    from spacenet.serve.folders import PrivateFolder, remove_leftovers

    temporary = Path(tempfile.gettempdir())
    remove_leftovers(temporary, FOLDER)
    folder = PrivateFolder.make(temporary, FOLDER)
    try:
        yield folder.path
    finally:
        folder.remove()
