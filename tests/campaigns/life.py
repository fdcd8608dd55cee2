"""One model's life: it learns, is saved, loaded, exported, killed while it is written, and given bad inputs."""

import copy
import os
import pickle
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import spacenet
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, ModelFileError, RunError, SettingsError, SpaceFull, SpacenetError
from spacenet.model.export import FORMATS, export_model
from spacenet.model.file import load_model, save_model, to_bytes
from spacenet.model.model import Model
from tests.campaigns.bad_inputs import BAD_INPUTS, BAD_LABELS, OTHER_SHAPES, learn_with_another_setting, of_another_type
from tests.campaigns.invariants import (
    Broken,
    Record,
    check_answers,
    check_continued,
    check_file,
    check_folder,
    check_structure,
    check_unchanged,
    check_updated,
    expect,
)
from tests.campaigns.random_models import LABEL_TYPES, as_raw, draw_kind, draw_labels, draw_samples

NAME = "model.safetensors"
LARGEST = 15
"""Inputs of up to ten to this power are accepted."""
FROM_SCIKIT_LEARN = ValueError, TypeError
"""Errors of its checks, which come before ours."""
SECONDS_TO_LEARN, SECONDS_TO_SAVE = 0.06, 0.03
"""In which a process has about learned a task, and written its model."""


class Life:
    """A classifier in memory, and a file that holds it as it was when it was saved last."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.folder, self.path, self.kind = folder, folder / NAME, draw_kind(chance)
        self.classifier = spacenet.SpaceNetClassifier(**self.kind.params)
        # Floats with a fraction come later: scikit-learn takes them for a regression, a model does not.
        kind = "int" if self.kind.labels == "share" else self.kind.labels
        self.classifier.fit(*self._task(chance, draw_labels(chance, kind, [])))
        self.classifier.save(self.path)
        self.now = self.saved = Record.of(self.model)

    @property
    def model(self) -> Model:
        return self.classifier.model_

    def check(self) -> None:
        """What must hold after each step."""
        check_unchanged(self.now, self.model, "the model in memory")
        check_structure(self.model)
        check_answers(self.model, self.now.probe)
        check_file(self.path, self.saved)
        check_folder(self.folder, NAME)

    def _task(self, chance: random.Random, labels: list[Any]) -> tuple[Array, Array]:
        return draw_samples(chance, self.kind, labels)

    def _new_task(self, chance: random.Random) -> tuple[Array, Array]:
        kind = self.kind.labels if chance.random() < 0.9 else chance.choice(LABEL_TYPES)
        return self._task(chance, draw_labels(chance, kind, self.model.classes))

    # Learning

    def _learn(self, chance: random.Random, task: tuple[Array, Array]) -> str:
        """Learn a task by one of the two ways; a network that is full must say so and stay as it is."""
        before, model, classes = self.now, self.model, len(self.now.tasks[-1])
        space = model.method.space_left(classes)
        continuous = task[1].dtype.kind == "f" and bool((task[1] % 1 != 0).any())
        try:
            if continuous or chance.random() < 0.3:
                model.learn(*task)
            else:
                self.classifier.partial_fit(*task)
        except SpaceFull:
            expect(self.classifier.expand != "auto", "a network that grows is full")
            return "full"
        except RunError:
            expect(not model.method.divides_network, "what is learned diverges from what was learned before")
            return "diverged"
        self.now = Record.of(self.model)
        labels = np.unique(task[1]).tolist()
        known = {(type(label), label) for learned in before.tasks for label in learned}
        new = [label for label in labels if (type(label), label) not in known]
        if model.method.can_update and len(new) < len(labels):  # known classes are updated
            check_updated(before, self.now)
            labels = new
        else:
            check_continued(before, self.now)
        added = self.now.tasks[len(before.tasks) :]
        expect(added == ((tuple(labels),) if labels else ()), "the new task has other classes")
        if space is not None and not self.now.grown(before):
            left = self.model.method.space_left(classes)
            expect(
                left is not None and left <= space,
                f"space for {space} tasks has become space for {left} without new units",
            )
        return "learned"

    def learn(self, chance: random.Random) -> str:
        return self._learn(chance, self._new_task(chance))

    def refresh(self, chance: random.Random) -> str:
        """Labels that the model knows, sometimes with new ones."""
        kinds = sorted({type(label) for label in self.model.classes}, key=str)
        kind = chance.choice(kinds)
        known = [label for label in self.model.classes if type(label) is kind]
        again = chance.sample(known, min(len(known), chance.randint(1, 3)))
        name = {int: "int", str: "str", float: "float", bool: "bool"}[kind]
        new = draw_labels(chance, name, self.model.classes) if name != "bool" and chance.random() < 0.3 else []
        return self._learn(chance, self._task(chance, [*again, *new]))

    def expand(self, chance: random.Random) -> str:
        """Let the network grow by itself, by a plan for the next task, or no longer."""
        if not self.model.method.divides_network:
            return "not possible"
        layer = chance.choice(self.model.method.blueprint.hidden).name
        plan = f"{len(self.model.tasks) + 1}:{layer}={chance.randint(1, 9)}"
        self.classifier.set_params(expand=chance.choice(("auto", plan, None)))
        before = {each.name: self.model.method.ledger.size(each.name) for each in self.model.method.blueprint.hidden}
        outcome = self._learn_changed(chance)
        if outcome == "learned" and self.classifier.expand == plan:
            size = self.model.method.ledger.size(layer)
            wanted = before[layer] + int(plan.partition("=")[2])
            expect(size == wanted, f"{layer} has {size} units, not {wanted}")
        return outcome

    def _learn_changed(self, chance: random.Random) -> str:
        labels = draw_labels(chance, "int", self.model.classes)
        task, before = self._task(chance, labels), self.now
        try:
            self.classifier.partial_fit(*task)
        except SpaceFull:
            expect(self.classifier.expand != "auto", "a network that grows is full")
            self.classifier.set_params(expand=self.model.config.flat()["expand"])
            return "full"
        self.now = Record.of(self.model)
        check_continued(before, self.now)
        return "learned"

    def large(self, chance: random.Random) -> str:
        """Values far outside of what was learned before: refused, or learned without harm to the rest."""
        x, y = self._new_task(chance)
        before = self.now
        try:
            self.model.learn(x.astype(np.float64) * 10.0 ** chance.uniform(2, LARGEST - 3), y)
        except SpacenetError:
            return "refused"
        self.now = Record.of(self.model)
        check_continued(before, self.now)
        self.check()
        self.load(chance)  # weights of that size are not a network to learn on with
        return "learned"

    def fit_again(self, chance: random.Random) -> str:
        """All is forgotten; the file is another matter."""
        self.classifier.fit(*self._task(chance, draw_labels(chance, "int", [])))
        self.now = Record.of(self.model)
        expect(len(self.now.tasks) == 1, "an old task is still there")
        return "learned"

    # Files

    def save(self, chance: random.Random) -> str:
        self.classifier.save(self.path)
        self.saved = self.now
        return "saved"

    def load(self, chance: random.Random) -> str:
        self.classifier = spacenet.load(self.path)
        self.now = self.saved
        return "loaded"

    def copy(self, chance: random.Random) -> str:
        """Go on with a copy; it does not know the file, as it may be used anywhere."""
        kind = chance.choice(("pickle", "deepcopy"))
        it = self.classifier
        self.classifier = pickle.loads(pickle.dumps(it)) if kind == "pickle" else copy.deepcopy(it)
        return kind

    def export(self, chance: random.Random) -> str:
        form = "onnx" if chance.random() < 0.08 else "torch"
        out = self.folder / f"exported{FORMATS[form].suffix}"
        try:
            export_model(self.model, out, form)
        except SettingsError:
            expect(self.classifier.method == "icarl", "what is one function cannot be exported")
            return "not possible"
        predict, _ = FORMATS[form].load(out)
        found, expected = predict(self.now.probe)["probabilities"], self.model.predict_proba(self.now.probe)
        expect(bool(np.allclose(found, expected, rtol=0, atol=1e-3)), f"{form} answers otherwise")
        out.unlink()
        return form

    def twins(self, chance: random.Random) -> str:
        """A model that was loaded learns like the one that was saved."""
        self.save(chance)
        task, before = self._new_task(chance), self.now
        loaded = load_model(self.path)
        try:
            loaded.learn(*task)
        except SpaceFull:
            return "full"
        self.model.learn(*task)
        expect(to_bytes(loaded) == to_bytes(self.model), "a loaded model learns otherwise")
        self.now = Record.of(self.model)
        check_continued(before, self.now)
        return "learned"

    def stale(self, chance: random.Random) -> str:
        """Another one learns and saves in between: this one must not replace it, and must still be usable."""
        self.save(chance)
        first, task = load_model(self.path), self._new_task(chance)
        try:
            first.learn(*task)
        except SpaceFull:
            return "full"
        save_model(self.path, first)
        others = Record.of(first)
        check_continued(self.saved, others)
        if chance.random() < 0.5:
            self._learn(chance, self._new_task(chance))
        try:
            self.classifier.save(self.path)
        except ModelFileError as error:
            expect("changed by another process" in str(error), f"refused for another reason: {error}")
        else:
            raise Broken("what another one learned was overwritten")
        self.saved = others
        self.check()
        self.load(chance)
        return "refused"

    def kill(self, chance: random.Random) -> str:
        """Kill a process that learns and saves; the file is the old one or the new one, and the next save tidies up."""
        self.save(chance)
        self.load(chance)
        task, twin = self._new_task(chance), load_model(self.path)
        try:
            twin.learn(*task)
        except SpaceFull:
            return "full"
        self._kill(task, chance)
        content, new = self.path.read_bytes(), to_bytes(twin)
        expect(content in (self.saved.content, new), "the file is neither the old one nor the new one")
        outcome = "killed before" if content == self.saved.content else "killed after"
        if any(path.name != NAME for path in self.folder.iterdir()):
            outcome = "killed within"
        next_one = load_model(self.path) if content == new else twin
        save_model(self.path, next_one)
        self.saved = Record.of(twin)
        self.load(chance)
        return outcome

    def _kill(self, task: tuple[Array, Array], chance: random.Random) -> None:
        wait_for_save, share = chance.random() < 0.6, chance.random()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                model = load_model(self.path)
                model.learn(*task)
                os.write(writer, b"s")
                save_model(self.path, model)
            finally:
                os._exit(0)
        os.close(writer)
        if wait_for_save:
            os.read(reader, 1)
        time.sleep(share * (SECONDS_TO_SAVE if wait_for_save else SECONDS_TO_LEARN))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)

    # Inputs

    def predict(self, chance: random.Random) -> str:
        """Any values that are accepted have probabilities; others are refused."""
        x = np.random.default_rng(chance.randrange(2**32)).normal(size=(5, *self.kind.shape))
        x *= 10.0 ** chance.uniform(-LARGEST, LARGEST)
        raw = as_raw(x, self.kind.dtype) if chance.random() < 0.3 else x
        try:
            check_answers(self.model, raw)
        except DataError:
            return "refused"
        return "answered"

    def bad(self, chance: random.Random) -> str:
        """Something that must be refused, by the model and by the classifier; both stay as they are."""
        task, case = self._new_task(chance), chance.choice((*BAD_INPUTS, *BAD_LABELS, "another type", "setting"))
        if case == "setting":
            self._refused(case, lambda: learn_with_another_setting(self.model, task, chance), SettingsError)
            return "refused"
        if case == "another type":
            y = of_another_type(self.model.classes, len(task[0]))
            if y is None:
                return "no such label"
            bad = task[0], y
        else:
            bad = {**BAD_INPUTS, **BAD_LABELS}[case](task, chance)
        self._refused(f"learn: {case}", lambda: self.model.learn(*bad), DataError)
        self._refused(f"partial_fit: {case}", lambda: self.classifier.partial_fit(*bad), *FROM_SCIKIT_LEARN)
        if case not in ("another type", *OTHER_SHAPES):  # nothing is wrong with them for a new model
            self._refused(f"fit: {case}", lambda: self.classifier.fit(*bad), *FROM_SCIKIT_LEARN)
        if case in BAD_INPUTS:
            self._refused(f"predict: {case}", lambda: self.model.predict_proba(bad[0]), DataError)
            self._refused(
                f"predict of scikit-learn: {case}", lambda: self.classifier.predict(bad[0]), *FROM_SCIKIT_LEARN
            )
        return "refused"

    def _refused(self, what: str, action: Callable[[], object], *errors: type[Exception]) -> None:
        try:
            action()
        except errors:
            check_unchanged(self.now, self.model, what)
            shares = self.classifier.predict_proba(self.now.probe)
            expect(shares.shape == (len(self.now.probe), len(self.model.classes)), f"{what}: it no longer predicts")
            return
        raise Broken(f"{what}: it was accepted")


STEPS: dict[str, int] = {
    "learn": 22,
    "refresh": 10,
    "expand": 8,
    "large": 3,
    "fit_again": 2,
    "save": 10,
    "load": 8,
    "copy": 2,
    "export": 1,
    "twins": 5,
    "stale": 6,
    "kill": 6,
    "predict": 6,
    "bad": 10,
}
"""How often each step comes, relative to the others."""


def live(seed: int, steps: int, folder: Path, note: Callable[[str, str], None]) -> None:
    """Live so many steps, and check all invariants after each. Follows from the seed alone."""
    torch.set_num_threads(1)
    life = Life(random.Random(f"{seed} begin"), folder)
    life.check()
    for number in range(steps):
        chance = random.Random(f"{seed} {number}")
        name = chance.choices(list(STEPS), list(STEPS.values()))[0]
        note(name, "begun")
        outcome = getattr(life, name)(chance)
        life.check()
        note(name, outcome)
