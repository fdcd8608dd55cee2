"""How much space a model has left, in words: after it has learned, and before it is full."""

import logging

from spacenet.model.model import Model
from spacenet.utils.text import plural

log = logging.getLogger("spacenet")
FEW = 1
"""With room for at most so many more tasks, learning warns."""


def warn_of_space(model: Model, left: int) -> None:
    """Warn if the model is full or almost: there is room for `left` more tasks like the last one."""
    method = model.method
    if method.needs_old_data or method.plan.auto or left > FEW:
        return
    room = f"room for only {plural(left, 'more task')}" if left else "no room for another task"
    log.warning("spacenet: warning: %s like the last one. expand=auto adds units where a task does not fit", room)
