"""SpaceNet.

Sokar, Mocanu, Pechenizkiy: SpaceNet: Make Free Space For Continual Learning. Neurocomputing 439, 2021.
"""

from spacenet.methods.shared.sparse import AdaptiveMethod


class SpaceNet(AdaptiveMethod):
    """The method of the paper: adaptive sparse training in a network of fixed size, no old data, no task identity."""

    name = "spacenet"
    refines = True
