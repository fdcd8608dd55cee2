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
import tyro
from annotated_types import Ge, Gt, Le

from spacenet.cli.forms import ModelArgument, parse
from spacenet.errors import SettingsError
from spacenet.model.model import Model
from spacenet.utils.extras import require_extra

MOST_THREADS = 4
"""By default: a prediction takes less time than all that is around it."""
BACKLOG = 512


@dataclass(frozen=True)
class ServeOptions:
    """Serve predictions of a model over HTTP; see /docs at the address that is printed.

    Ctrl-C or SIGTERM ends it with exit code 0; a task that is being learned is given up.
    """

    model: ModelArgument
    host: str = "127.0.0.1"
    """Address to listen at. Any but this computer's own lets others in, and there is no password."""
    port: Annotated[int, Ge(0), Le(65535)] = 8000
    """Port to listen at; 0 takes a free one."""
    allow_learn: bool = False
    """Let requests add classes to the model; the model file is replaced after each task."""
    max_request_mb: Annotated[float, Gt(0), Le(4096)] = 16.0
    """Largest request in MiB; archives count as unpacked."""
    allow_host: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME")] = ()
    """Name under which the service may be reached besides its address and localhost, with or without a port;
    can be given several times."""
    threads: Annotated[int, Ge(1)] | None = None
    """Threads that predict (default: one per processor core, at most 4)."""


def serve(arguments: list[str]) -> int:
    options = parse(ServeOptions, arguments, "serve")
    require_extra("serve", "web", "uvicorn")
    require_extra("serve", "web", "fastapi")
    from spacenet.serve.app import create_app
    from spacenet.serve.hosts import check_names, own_hosts
    from spacenet.serve.jobs import TrainingJob
    from spacenet.serve.server import Server, end_on_signals
    from spacenet.serve.store import Store

    allowed = check_names(options.allow_host)
    torch.set_num_threads(1)
    store = Store(options.model)
    threads = options.threads or min(MOST_THREADS, os.cpu_count() or 1)
    with (
        suppress(KeyboardInterrupt),  # a signal before the server runs
        end_on_signals() as ending,
        closing(open_listener(options.host, options.port)) as listener,
        ThreadPoolExecutor(threads, "predict", torch.set_num_threads, (1,)) as pool,
        closing(TrainingJob(store)) if options.allow_learn else nullcontext() as learning,
    ):
        hosts = allowed | own_hosts(*listener.getsockname()[:2])
        server = Server(create_app(store, learning, pool, int(options.max_request_mb * 1024**2), hosts))
        ending.server = server
        _announce(options, listener, store.current.model)
        server.run(sockets=[listener])
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
