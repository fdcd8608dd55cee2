"""`spacenet serve MODEL …`: models behind HTTP."""

import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import torch

from spacenet.cli.forms import parse_groups
from spacenet.cli.serving import ServeOptions, build_access, check_exposure, load_tls
from spacenet.errors import SettingsError
from spacenet.model.unknown import check_rate
from spacenet.utils.extras import require_extra

if TYPE_CHECKING:
    from spacenet.serve.models import Models

MOST_THREADS = 4
"""By default: a prediction takes less time than all that is around it."""
BACKLOG = 512
log = logging.getLogger("spacenet")


def serve(arguments: list[str]) -> int:
    options = parse_groups(ServeOptions, arguments, "serve")
    require_extra("serve", "web", "uvicorn")
    require_extra("serve", "web", "fastapi")
    require_extra("serve", "web", "python_multipart")
    require_extra("serve", "web", "prometheus_client")
    from spacenet.serve.logs import write_logs

    with write_logs(options.log.log_format, options.log.log_file):
        _serve(options)
    print("stopped", flush=True)
    return 0


def _serve(options: ServeOptions) -> None:
    from spacenet.serve.app import create_app
    from spacenet.serve.hosts import check_names, own_hosts
    from spacenet.serve.limits import Limits
    from spacenet.serve.metrics import show_connections
    from spacenet.serve.models import name_models, open_models
    from spacenet.serve.server import Server, end_on_signals

    main, most, rate = options.main, options.limit, check_rate(options.main.unknown)
    access, certificate = build_access(options), load_tls(options.access)
    allowed = check_names(options.access.allow_host)
    torch.set_num_threads(1)
    files = name_models(main.models)
    threads = main.threads or min(MOST_THREADS, os.cpu_count() or 1)
    with (
        suppress(KeyboardInterrupt),  # a signal before the server runs
        end_on_signals() as ending,
        closing(open_listener(main.host, main.port)) as listener,
        ThreadPoolExecutor(threads, "predict", torch.set_num_threads, (1,)) as pool,
        ExitStack() as opened,
    ):
        warnings = check_exposure(options, listener.getsockname()[0])
        models = opened.enter_context(open_models(files, learns=main.allow_learn, unknown=rate))
        hosts = allowed | own_hosts(*listener.getsockname()[:2])
        limits = Limits(most.max_requests, most.timeout)
        app = create_app(models, pool, int(most.max_request_mb * 1024**2), hosts, access, limits)
        server = Server(app, certificate, most.max_connections)
        ending.server = server
        show_connections(app, server.guard)
        _announce(options, listener, models)
        for warning in warnings:
            log.warning("spacenet: warning: %s", warning)
        server.run(sockets=[listener])


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
    """Print what is served, where, and who may use it."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if options.access.certificate else "http"
    at = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    can = "predicts and learns" if options.main.allow_learn else "predicts"
    for each in models:
        model = each.store.current.model
        holds = f"{len(model.tasks)} tasks, {len(model.classes)} classes"
        where = at if each is models.default else f"{at}/models/{each.name}"
        print(f"{each.store.path} ({holds}) {can} at {where} (see {at}/docs; Ctrl-C ends it)", flush=True)
    if conditions := _conditions(options):
        print("; ".join(conditions), flush=True)


def _conditions(options: ServeOptions) -> list[str]:
    """What is said of access beyond the default, where all on this computer may use the service."""
    given, found = options.access, []
    if given.token_file or given.teach_token_file:
        found.append(f"reading needs a token of {given.token_file}" if given.token_file else "reading needs no token")
    if options.main.allow_learn and given.teach_token_file:
        found.append(f"teaching needs a token of {given.teach_token_file}")
    if given.allow_origin:
        found.append(f"pages of {', '.join(given.allow_origin)} may use it")
    if given.root_path:
        found.append(f"a proxy shows it under {given.root_path}")
    return found
