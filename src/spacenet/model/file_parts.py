"""What the parts of the model file's format share."""

from spacenet.data.preprocessing import Array

Arrays = dict[str, Array]


def expect(holds: bool, otherwise: str) -> None:
    """Raise `ValueError` unless something holds of a file's content."""
    if not holds:
        raise ValueError(otherwise)
