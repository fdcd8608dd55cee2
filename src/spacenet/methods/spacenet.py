"""SpaceNet.

Sokar, Mocanu, Pechenizkiy: SpaceNet: Make Free Space For Continual Learning. Neurocomputing 439, 2021.
"""

from spacenet.methods.shared.sparse import AdaptiveMethod


class SpaceNet(AdaptiveMethod):
    """The paper's method: adaptive sparse training in a fixed network, no old data, no task identity."""

    name = "spacenet"
