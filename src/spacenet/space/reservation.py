"""Algorithm 4: the task reserves its most important units; no later task may add connections into them."""

from collections.abc import Mapping

from torch import Tensor

from spacenet.space.cut import Units
from spacenet.space.ledger import Ledger


def reserve(
    ledger: Ledger, task: int, selection: Units, importance: Mapping[str, Tensor], count: Mapping[str, int]
) -> None:
    """Reserve, in each layer that `count` names, the most important of the selected units.

    `importance` has one value per selected unit, in the order of `selection` (equation 5).
    """
    for layer, wanted in count.items():
        best = importance[layer].argsort(descending=True, stable=True)[:wanted]
        ledger.reserve(layer, selection[layer][best].sort().values, task)
