"""Static-SparseNN: the paper's baseline without adaptive training."""

from spacenet.methods.shared.sparse import SparseMethod


class StaticSparse(SparseMethod):
    """SpaceNet without rewiring: connections stay where they were allocated."""

    name = "static-sparse"
    refines = True
