"""The signature and the docstring of the estimator, made from the settings."""

import inspect
from typing import Any

from spacenet.config.model import AUTO
from spacenet.config.presets import default_method
from spacenet.config.stream import CUSTOM
from spacenet.model.parameters import setting_parameters

DOC = """A classifier that learns new classes one task after another, in a network of fixed size and without old data.

    Each call of `partial_fit` is a task: it gets its own part of the network, and what earlier tasks reserved never
    changes again. Prediction needs no task identity. `fit` forgets everything and learns one task.

    Parameters
    ----------
    method : str
        How it learns: the name of any method. The default, "spacenet-density", keeps small statistics of each class
        beside the network, to tell tasks apart; "spacenet" is the paper's method, which keeps the network alone.
        "joint", and "spacenet-rehearsal" by default, need all old data, so they learn one task and no more.
    method_settings : dict or None
        Settings of a method, e.g. ``{"strength": 10.0}`` of "ewc", by name. Those of "spacenet-density", "spacenet",
        "static-sparse", "spacenet-rehearsal" and "spacenet-experts" are parameters of their own, below.
    net : "auto", "mlp", "small-cnn", "resnet-18", "wrn-DEPTH-WIDTH" or a registered name
        The network. "auto" takes the small CNN for images of shape (n, c, h, w), else the MLP.
    SETTINGS
    random_state : int, RandomState or None
        Everything random follows from it. The default gives the same model every time.
    verbose : bool
        Print a line per epoch.
    unknown : float or None
        Call samples that are like no class unknown in `predict`, at a threshold where this fraction of the samples of
        known classes, e.g. 0.05, is called so too. It may be set at any time. (Only spacenet-density.)
    unknown_label : label or None
        What `predict` calls them. The default is -1 if all classes are numbers, as scikit-learn labels outliers, and
        "unknown" otherwise; it must not be a class.

    Attributes
    ----------
    classes_ : array
        The labels, in the order in which they came (sorted within a task). Labels of any type may be added later.
    n_features_in_ : int
        Features of a sample; for images the length of their first axis.
    space_left_ : int
        How many more tasks like the last one fit, at most 100; None for methods that do not divide a network.
    tasks_ : list of tuples
        The labels of each task.
    model_ : Model
        The network and all that belongs to it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import spacenet
    >>> x, y = load_digits(return_X_y=True)
    >>> classifier = spacenet.SpaceNetClassifier(epochs=5)
    >>> classifier = classifier.partial_fit(x[y < 3], y[y < 3])
    >>> classifier = classifier.partial_fit(x[(y >= 3) & (y < 5)], y[(y >= 3) & (y < 5)])
    >>> classifier.tasks_
    [(0, 1, 2), (3, 4)]
    """


def document(kind: Any) -> None:
    """Give the estimator its signature and its docstring, made from the settings."""
    settings = setting_parameters()
    own: dict[str, Any] = {"method": default_method(CUSTOM), "method_settings": None, "net": AUTO}
    own |= {name: p.default for name, p in settings.items()}
    own |= {"random_state": 0, "verbose": False, "unknown": None, "unknown_label": None}
    parameters = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in own.items()]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kind.__init__.__signature__ = inspect.Signature([itself, *parameters])
    kind.__doc__ = DOC.replace("SETTINGS", "\n    ".join(p.describe(n) for n, p in settings.items()))
