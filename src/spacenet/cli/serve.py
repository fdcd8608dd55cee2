"""`spacenet serve MODEL …`: models behind HTTP."""

import ipaddress
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import torch
import tyro
from annotated_types import Ge, Gt, Le

from spacenet.cli.forms import parse
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

if TYPE_CHECKING:
    from spacenet.serve.models import Models

MOST_THREADS = 4
"""By default: a prediction takes less time than all that is around it."""
BACKLOG = 512
MODELS_HELP = "Model files, each as FILE or NAME=FILE; /models/NAME is its address, and that of the first also /."


@dataclass(frozen=True)
class ServeOptions:
    """Serve predictions of models over HTTP; see /docs at the address that is printed.

    Ctrl-C or SIGTERM ends it with exit code 0; jobs that are not done are taken up again when it next starts.
    """

    models: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MODEL …", help=MODELS_HELP)]
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
    from spacenet.serve.jobs import Jobs
    from spacenet.serve.models import Hosted, Models, name_models
    from spacenet.serve.server import Server, end_on_signals
    from spacenet.serve.store import Store

    allowed = check_names(options.allow_host)
    torch.set_num_threads(1)
    stores = {name: Store(path) for name, path in name_models(options.models).items()}
    threads = options.threads or min(MOST_THREADS, os.cpu_count() or 1)
    with (
        suppress(KeyboardInterrupt),  # a signal before the server runs
        end_on_signals() as ending,
        closing(open_listener(options.host, options.port)) as listener,
        ThreadPoolExecutor(threads, "predict", torch.set_num_threads, (1,)) as pool,
        ExitStack() as opened,
    ):
        jobs = {
            name: opened.enter_context(closing(Jobs(store))) for name, store in stores.items() if options.allow_learn
        }
        models = Models([Hosted(name, store, jobs.get(name)) for name, store in stores.items()])
        hosts = allowed | own_hosts(*listener.getsockname()[:2])
        server = Server(create_app(models, pool, int(options.max_request_mb * 1024**2), hosts))
        ending.server = server
        _announce(options, listener, models)
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


def _announce(options: ServeOptions, listener: socket.socket, models: "Models") -> None:
    host, port = listener.getsockname()[:2]
    at = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    can = "predicts and learns" if options.allow_learn else "predicts"
    for each in models:
        model = each.store.current.model
        holds = f"{len(model.tasks)} tasks, {len(model.classes)} classes"
        where = at if each is models.default else f"{at}/models/{each.name}"
        print(f"{each.store.path} ({holds}) {can} at {where} (see {at}/docs; Ctrl-C ends it)", flush=True)
    if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        print(f"spacenet: warning: {host} is open to other computers, and there is no password", file=sys.stderr)
