"""The options of `spacenet serve` in groups, and what they mean for the service."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from annotated_types import Ge, Gt, Le
from tyro.conf import UseAppendAction, arg

from spacenet.cli.forms import UnknownOption
from spacenet.errors import SettingsError

if TYPE_CHECKING:
    import ssl

    from spacenet.serve.gate import Access

MODELS_HELP = "Model files, each as FILE or NAME=FILE; /models/NAME is its address, and that of the first also /."
ALLOW_HOST_HELP = (
    "Name under which the service may be reached besides its address and localhost, with or without a port."
)
ALLOW_ORIGIN_HELP = (
    "Origin of web pages that may use the service, as in https://example.org. Teaching needs a token there."
)


@dataclass(frozen=True)
class MainOptions:
    """What is served, and where."""

    models: Annotated[
        tyro.conf.Positional[tuple[str, ...]], arg(metavar="MODEL …", help=MODELS_HELP, help_behavior_hint="")
    ]
    host: str = "127.0.0.1"
    """Address to listen at. Any but this computer's own lets others in; see --token-file."""
    port: Annotated[int, Ge(0), Le(65535)] = 8000
    """Port to listen at; 0 takes a free one."""
    allow_learn: bool = False
    """Let requests add classes to the model; the model file is replaced after each task."""
    unknown: UnknownOption = None
    threads: Annotated[int, Ge(1)] | None = None
    """Threads that predict (default: one per processor core, at most 4)."""


@dataclass(frozen=True)
class AccessOptions:
    """Who may use it, and how it is reached."""

    token_file: Path | None = None
    """Ask for a token before anything is predicted or shown: one of those in this file, one in each line, sent as
    Authorization: Bearer TOKEN. Make one with: openssl rand -hex 32 > token; chmod 600 token. A changed file counts
    at once."""
    teach_token_file: Path | None = None
    """Ask for one of the tokens in this file before a model is changed; they permit reading too."""
    insecure: bool = False
    """Allow teaching without a token where other computers can reach the service."""
    allow_host: Annotated[tuple[str, ...], UseAppendAction, arg(metavar="NAME", help=ALLOW_HOST_HELP)] = ()
    allow_origin: Annotated[tuple[str, ...], UseAppendAction, arg(metavar="ORIGIN", help=ALLOW_ORIGIN_HELP)] = ()
    root_path: str | None = None
    """Path that a proxy shows the service under, as in /spacenet."""
    certificate: Path | None = None
    """Serve over TLS with the certificate in this PEM file, followed by those that vouch for it."""
    key: Path | None = None
    """The private key of the certificate, a PEM file without a password."""


@dataclass(frozen=True)
class LimitOptions:
    """What requests may take."""

    max_request_mb: Annotated[float, Gt(0), Le(4096)] = 16.0
    """Largest request in MiB; archives count as unpacked."""
    max_requests: Annotated[int, Ge(1)] = 256
    """Requests in work at the same time; more are answered with 503."""
    timeout: Annotated[float, Gt(0), Le(86400)] = 60.0
    """Seconds that a request may wait and be worked on once it has arrived; then it is answered with 504."""
    max_connections: Annotated[int, Ge(1)] | None = None
    """Open connections (default: 1000, or fewer if the process may not open so many files)."""


@dataclass(frozen=True)
class LogOptions:
    """What is written down, and where."""

    log_format: Literal["text", "json"] = "text"
    """Lines of text, or a JSON object in each line."""
    log_file: Path | None = None
    """Write the log to this file instead of standard error: at most five files of 10 MiB, FILE, FILE.1 and so on."""
    log_requests: bool = False
    """Also write a line for each request: when, what, status, how long, samples, from where; no contents."""


@dataclass(frozen=True)
class ServeOptions:
    """Serve predictions of models over HTTP; see /docs at the address that is printed.

    Ctrl-C or SIGTERM ends it with exit code 0; jobs that are not done are taken up again when it next starts.
    """

    main: MainOptions
    access: AccessOptions
    limit: LimitOptions
    log: LogOptions


def build_access(options: ServeOptions) -> "Access":
    """Who may use the service. Raises `SettingsError` for what cannot work."""
    from spacenet.serve.access import Tokens
    from spacenet.serve.gate import Access
    from spacenet.serve.origins import check_origins
    from spacenet.serve.paths import check_root_path
    from spacenet.serve.secrets import TokenFile

    given = options.access
    reading = TokenFile(given.token_file, "token_file") if given.token_file else None
    teaching = TokenFile(given.teach_token_file, "teach_token_file") if given.teach_token_file else None
    if reading and teaching and reading.shares_token_with(teaching):
        reason = f"a token of {given.token_file} is also in {given.teach_token_file}, which would let it teach"
        raise SettingsError(reason, setting="token_file")
    if reading and not teaching and options.main.allow_learn:
        reason = "--token-file permits reading only; with --allow-learn give --teach-token-file too"
        raise SettingsError(reason)
    root_path, origins = check_root_path(given.root_path or ""), frozenset(check_origins(given.allow_origin))
    return Access(Tokens(reading, teaching), origins, root_path, options.log.log_requests)


def load_tls(options: AccessOptions) -> "ssl.SSLContext | None":
    """The context of the certificate, if one is given."""
    from spacenet.serve.tls import load_certificate

    if options.certificate and options.key:
        return load_certificate(options.certificate, options.key)
    if options.certificate or options.key:
        raise SettingsError("give --certificate and --key together")
    return None


def check_exposure(options: ServeOptions, host: str) -> list[str]:
    """What to warn of where other computers can reach the service. Raises `SettingsError` if they could teach it."""
    if ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        return []
    access, teaches = options.access, options.main.allow_learn
    if teaches and not access.teach_token_file and not access.insecure:
        reason = f"other computers can reach {host} and could teach the model; give --teach-token-file FILE"
        raise SettingsError(f"{reason} (or --insecure, if something else keeps them out)", setting="allow_learn")
    warnings = []
    if not access.token_file:
        may = "read and teach" if teaches and not access.teach_token_file else "read"
        warnings.append(f"{host} is open to other computers, and all of them may {may}; see --token-file")
    if (access.token_file or access.teach_token_file) and not access.certificate:
        warnings.append("tokens are sent unencrypted; give --certificate and --key, or let a proxy add TLS")
    return warnings
