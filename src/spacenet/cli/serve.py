"""`spacenet serve MODEL`: a model behind HTTP."""

import ipaddress
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le

from spacenet.cli.forms import ModelArgument, parse
from spacenet.errors import SettingsError
from spacenet.model.model import Model
from spacenet.utils.extras import require_extra

MOST_THREADS = 4
"""By default: a prediction takes less time than all that is around it."""
LAST_REQUESTS_SECONDS = 10
BACKLOG = 512


@dataclass(frozen=True)
class ServeOptions:
    """Serve predictions of a model over HTTP; see /docs at the address that is printed."""

    model: ModelArgument
    host: str = "127.0.0.1"
    """Address to listen at. Any but this computer's own lets others in, and there is no password."""
    port: Annotated[int, Ge(0), Le(65535)] = 8000
    """Port to listen at; 0 takes a free one."""
    allow_learn: bool = False
    """Let requests add classes to the model; the model file is replaced after each task."""
    max_request_mb: Annotated[float, Gt(0), Le(4096)] = 16.0
    """Largest request in MiB; archives count as unpacked."""
    threads: Annotated[int, Ge(1)] | None = None
    """Threads that predict (default: one per processor core, at most 4)."""


def serve(arguments: list[str]) -> int:
    options = parse(ServeOptions, arguments, "serve")
    uvicorn = require_extra("serve", "web", "uvicorn")
    require_extra("serve", "web", "fastapi")
    from spacenet.serve.app import create_app
    from spacenet.serve.jobs import TrainingJob
    from spacenet.serve.store import Store

    torch.set_num_threads(1)
    store = Store(options.model)
    threads = options.threads or min(MOST_THREADS, os.cpu_count() or 1)
    with (
        closing(open_listener(options.host, options.port)) as listener,
        ThreadPoolExecutor(threads, "predict", torch.set_num_threads, (1,)) as pool,
        closing(TrainingJob(store)) if options.allow_learn else nullcontext() as learning,
    ):
        app = create_app(store, learning, pool, int(options.max_request_mb * 1024**2))
        _announce(options, listener, store.current.model)
        quiet = {"log_level": "warning", "access_log": False}
        config = uvicorn.Config(app, timeout_graceful_shutdown=LAST_REQUESTS_SECONDS, **quiet)
        with suppress(KeyboardInterrupt):  # the way to end it
            uvicorn.Server(config).run(sockets=[listener])
    print("stopped", flush=True)
    return 0


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that accepts connections there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        # Said to be TCP once more: asyncio sends answers without delay only where it can read that (else 40 ms each).
        return socket.socket(opened.family, opened.type, socket.IPPROTO_TCP, opened.detach())
    except OSError as error:
        remedy = "give another --host or --port (--port 0 takes a free one)"
        raise SettingsError(f"cannot listen at {host}, port {port} ({error.strerror or error}); {remedy}") from error


def _announce(options: ServeOptions, listener: socket.socket, model: Model) -> None:
    host, port = listener.getsockname()[:2]
    at = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    can = "predicts and learns" if options.allow_learn else "predicts"
    holds = f"{len(model.tasks)} tasks, {len(model.classes)} classes"
    print(f"{options.model} ({holds}) {can} at {at} (see {at}/docs; Ctrl-C ends it)", flush=True)
    if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        print(f"spacenet: warning: {host} is open to other computers, and there is no password", file=sys.stderr)
