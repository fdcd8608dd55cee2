"""Learning without Forgetting: on the new task's samples, old classes keep the scores that they had before."""

from spacenet.methods.shared.distillation import Distillation


class LwF(Distillation):
    """Cross-entropy for the new classes, and distillation from the network before the task for the old ones.

    With the loss over all classes, little above 20 % on five tasks is normal: the scores of old classes keep their
    proportions, but the cross-entropy pushes them below the new ones on every sample. `loss_over` own, as published for
    one head per task, avoids that.
    """

    name = "lwf"
    strategy = "Regularization"
    reference = "Li, Hoiem: Learning without forgetting. IEEE Trans. Pattern Analysis and Machine Intelligence, 2018"
    settings_from = "Temperature as published; strength and learning rate from a small search on held-out data."
