"""Counts of a model's predictions while it is served, kept beside its file: see `spacenet.model.watching`."""

import logging
import threading
import time
from collections.abc import Sequence

import numpy as np

from spacenet.errors import DataError, SpacenetError
from spacenet.model.labels import Label
from spacenet.model.predictions import Measured
from spacenet.model.watching import Watch, WatchSummary, load_watch, save_watch
from spacenet.serve.store import Store

SAVE_SECONDS = 30.0
"""Counts are written no more often than this, and at the end; a service that is killed loses those of so long."""
log = logging.getLogger("spacenet")


class Watcher:
    """Counts predictions in several threads. What an earlier service counted at the same rate is continued."""

    def __init__(self, store: Store, rate: float) -> None:
        self.store, self.rate = store, rate
        self._lock, self._saving = threading.Lock(), threading.Lock()
        self._saved, self._changed = time.monotonic(), False
        self._classes: Sequence[Label] | None = None
        """Those of the model when they were looked at last."""
        self._watch = self._load() or Watch(store.current.classes, rate)

    def _load(self) -> Watch | None:
        try:
            found = load_watch(self.store.path)
        except DataError as error:
            log.warning("spacenet: warning: predictions are counted anew: %s", error.message)
            return None
        return found if found is not None and found.rate == self.rate else None

    def count(self, classes: Sequence[Label], found: Measured) -> None:
        """Count predictions of a model with these classes, which may have been replaced meanwhile."""
        if found.typicality is None:
            return
        best, typicality = found.probabilities.argmax(1).tolist(), found.typicality
        labels = [classes[number] if share > 0 else None for number, share in zip(best, typicality, strict=True)]
        with self._lock:
            self._follow_classes()
            self._watch.update(labels, np.asarray(typicality))
            self._changed = True
            due = time.monotonic() - self._saved > SAVE_SECONDS
        if due:
            self.save()

    def summary(self) -> WatchSummary:
        with self._lock:
            self._follow_classes()
            return self._watch.summary()

    def save(self) -> None:
        """Write the counts, if there are new ones. A disk that is full does not stop predictions."""
        with self._saving:
            with self._lock:
                self._follow_classes()
                if not self._changed:
                    return
                copy = Watch.from_plain(self._watch.to_plain())
                self._changed, self._saved = False, time.monotonic()
            try:
                save_watch(self.store.path, copy)
            except (SpacenetError, OSError) as error:
                log.warning("spacenet: warning: counts of predictions are not written: %s", error)

    def close(self) -> None:
        self.save()

    def _follow_classes(self) -> None:
        """Go on with the classes that the model has now: of those that were forgotten nothing is kept."""
        if (classes := self.store.current.classes) is not self._classes:
            self._classes = classes
            if self._watch.labels != [str(label) for label in classes]:
                self._watch.extend(classes)
                self._changed = True
