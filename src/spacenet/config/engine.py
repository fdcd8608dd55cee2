"""Where runs are computed, and how many at the same time."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from spacenet.config.settings import Settings
from spacenet.errors import SettingsError


@dataclass(frozen=True)
class EngineConfig(Settings):
    """Where runs are computed, and how many at the same time."""

    engine: Literal["local", "dask", "ray"] = "local"
    """This machine's processes, or an existing Dask or Ray cluster (extras "dask" and "ray")."""
    address: str | None = None
    """Address of the cluster: tcp://HOST:8786 of a Dask scheduler; for Ray auto or HOST:PORT."""
    workers: Annotated[int, Ge(1)] | None = None
    """Runs at the same time (default: one per core, two if they use a GPU; on a cluster all that it has)."""

    def validate(self) -> None:
        if self.engine == "local" and self.address is not None:
            raise SettingsError(
                f"{self.address} is the address of a cluster; set engine to dask or ray", setting="address"
            )
        if self.engine != "local" and self.address is None:
            raise SettingsError(
                f"the address of the {self.engine} cluster is missing (Dask: tcp://HOST:8786; Ray: auto)",
                setting="address",
            )
