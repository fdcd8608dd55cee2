"""`describe`: what a network consists of for spacenet, before anything is learned."""

from dataclasses import dataclass

from torch import nn

from spacenet.api.results import Shown
from spacenet.config.model import NetConfig
from spacenet.data.stream import Stream
from spacenet.errors import SettingsError
from spacenet.nets import Net, build_net, net_name
from spacenet.report.tables import Table, network_table
from spacenet.space.blueprint import Layer, Link


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """The layers of a network, and the links between them. Shown as a table.

    Attributes
    ----------
    layers : tuple of Layer
        The units that tasks can own, with their number and the values that each has (a bias, say).
    links : tuple of Link
        Between which layers there can be connections, and the shape of one connection's weights.
    """

    name: str
    layers: tuple[Layer, ...]
    links: tuple[Link, ...]

    def tables(self) -> list[Table]:
        return [network_table(self.name, self.layers, self.links)]


def describe(
    net: Net, input_shape: tuple[int, ...] | Stream | None = None, *, hidden: tuple[int, ...] = ()
) -> Description:
    """Show the layers of units that spacenet finds in a network.

    A module is traced and checked as it is before it learns: the same errors are raised.

    Parameters
    ----------
    net : torch.nn.Module, str or callable
        A module, the name of a network, or a function that returns a module.
    input_shape : tuple of int or Stream, optional
        The shape of a sample, such as ``(3, 32, 32)``, or a stream with such samples. A module that begins with
        `torch.nn.Linear` does not need it.
    hidden : tuple of int, optional
        Widths of the hidden layers, for networks that take them.

    Returns
    -------
    Description
        Shows itself as a table in a terminal and in a notebook.

    Examples
    --------
    >>> import spacenet
    >>> from torch import nn
    >>> module = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 2))
    >>> spacenet.describe(module).layers[1].size
    20
    >>> print(spacenet.describe(module).to_markdown())
    **Sequential: 20 hidden units**
    <BLANKLINE>
    | layer | units | values per unit | reads | weights per connection | connections |
    | :--- | ---: | ---: | :--- | ---: | ---: |
    | input | 8 | 0 |  |  |  |
    | 0 | 20 | 1 | input | 1 | 160 |
    | output | 1 per class | 1 | 0 | 1 | 20 per class |
    <BLANKLINE>
    """
    if isinstance(input_shape, Stream):
        input_shape = input_shape.input_shape
    if input_shape is None:
        input_shape = _first_shape(net)
    name = net_name(net) or ""
    blueprint = build_net(NetConfig(name, hidden=hidden), tuple(input_shape))
    return Description(name, blueprint.layers, blueprint.links)


def _first_shape(net: Net) -> tuple[int, ...]:
    """The shape of a sample, where the module's first layer tells it."""
    first = (
        next((each for each in net.modules() if [*each.parameters(False)]), None)
        if isinstance(net, nn.Module)
        else None
    )
    if not isinstance(first, nn.Linear):
        raise SettingsError("the shape of a sample is needed, such as (3, 32, 32)", setting="input_shape")
    return (first.in_features,)
