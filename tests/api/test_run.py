"""`spacenet.run`: in memory and in folders, with one seed and several, with the user's own parts."""

from pathlib import Path
from typing import Any

import pytest

import spacenet
from spacenet.api import CONFIG, RunResult, SeedResults, resume
from spacenet.config.run import read_toml
from spacenet.errors import RunError, SettingsError, SpaceFull
from spacenet.experiments.callbacks import RunStart
from spacenet.experiments.jobs import Job, UnexpectedError
from spacenet.experiments.metrics import Record
from spacenet.methods import Method
from spacenet.methods.naive import Naive
from spacenet.nets.mlp import build_mlp
from spacenet.space.blueprint import Blueprint
from tests.api.support import QUICK, SPACE, bits, cloud_stream


class Interrupt(spacenet.Callback):
    """Stops a run after its first task, as Ctrl+C does."""

    def on_task_end(self, record: Record) -> None:
        raise KeyboardInterrupt


class Never(spacenet.Callback):
    """Fails as soon as anything is trained."""

    def on_run_begin(self, start: RunStart) -> None:
        raise AssertionError("it was run again")


def test_a_run_in_memory_writes_nothing(place: Path) -> None:
    result = spacenet.run(cloud_stream(), **QUICK, **SPACE)
    assert isinstance(result, RunResult)
    assert (result.method, result.stream, result.seed, result.folder) == ("spacenet-density", "custom", 0, None)
    assert result.matrix.shape == (3, 3)
    assert result.acc == pytest.approx(result.matrix[-1].mean())
    assert result.model is not None
    assert result.labels == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert list(place.iterdir()) == []


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    first, again, other = (spacenet.run(cloud_stream(), seed=seed, **QUICK, **SPACE) for seed in (1, 1, 2))
    assert bits(first) == bits(again)
    assert bits(first)[1] != bits(other)[1]


@pytest.mark.parametrize("method", ["spacenet", "ewc"])
def test_an_interrupted_run_goes_on_with_the_same_call(method: str, place: Path) -> None:
    options = {**QUICK, **(SPACE if method == "spacenet" else {})}
    whole = spacenet.run(cloud_stream(), method, **options)
    with pytest.raises(KeyboardInterrupt):
        spacenet.run(cloud_stream(), method, out="kept", callbacks=[Interrupt()], **options)
    assert (place / "kept" / CONFIG).is_file()
    result = spacenet.run(cloud_stream(), method, out=place / "kept", **options)
    assert bits(result) == bits(whole)
    assert result.folder == place / "kept"
    assert "resuming after 1 tasks" in (place / "kept" / "run.log").read_text()


def test_a_finished_run_is_returned_without_training() -> None:
    first = spacenet.run(cloud_stream(), out="kept", **QUICK, **SPACE)
    again = spacenet.run(cloud_stream(), out="kept", callbacks=[Never()], **QUICK, **SPACE)
    assert bits(again) == bits(first)
    assert again.metrics == first.metrics


def test_a_folder_with_other_settings_is_not_used() -> None:
    spacenet.run(cloud_stream(), "naive", out="kept", **QUICK)
    with pytest.raises(RunError, match="kept holds a run with other settings: training.epochs"):
        spacenet.run(cloud_stream(), "naive", out="kept", **{**QUICK, "epochs": 3})
    with pytest.raises(RunError, match="other settings: seed is"):
        spacenet.run(cloud_stream(), "naive", seed=4, out="kept", **QUICK)
    with pytest.raises(RunError, match="other tasks"):
        spacenet.run(cloud_stream(classes_per_task=3), "naive", out="kept", **QUICK)


def test_a_run_by_name_can_be_resumed_from_its_folder_alone(place: Path) -> None:
    options: dict[str, Any] = {"epochs": 1, "tasks": "0,1/2,3", "progress": False}
    with pytest.raises(KeyboardInterrupt):
        spacenet.run("split-digits", out="kept", callbacks=[Interrupt()], **options)
    result = resume(place / "kept", progress=False)
    assert isinstance(result, RunResult)
    assert bits(result) == bits(spacenet.run("split-digits", **options))


def test_the_folder_of_a_run_on_data_in_memory_says_how_to_go_on(place: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        spacenet.run(cloud_stream(), out="kept", callbacks=[Interrupt()], **QUICK)
    with pytest.raises(RunError, match="in the program that made it.* with the same stream and out='kept'"):
        resume("kept", progress=False)


def test_seeds_in_parallel_processes_are_the_single_runs(place: Path) -> None:
    found = spacenet.run(cloud_stream(), "spacenet", seeds=2, seed=3, workers=2, **QUICK, **SPACE)
    assert isinstance(found, SeedResults)
    assert [result.seed for result in found] == [3, 4]
    for result in found:
        assert bits(result) == bits(spacenet.run(cloud_stream(), "spacenet", seed=result.seed, **QUICK, **SPACE))
    assert found.acc.mean == pytest.approx(sum(result.acc for result in found) / 2)
    assert found.acc.std > 0
    assert found.failures == ()
    assert list(place.iterdir()) == []


def test_seeds_in_a_folder_go_on_and_leave_a_summary(place: Path) -> None:
    options = {**QUICK, "out": "kept", "seeds": 2, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        spacenet.run(cloud_stream(), "naive", callbacks=[Interrupt()], **options)
    found = spacenet.run(cloud_stream(), "naive", **options)
    assert (place / "kept" / "summary.json").is_file()
    assert [result.folder for result in found] == [Path("kept/seed-0"), Path("kept/seed-1")]
    again = spacenet.run(cloud_stream(), "naive", callbacks=[Never()], **options)
    assert [bits(result) for result in again] == [bits(result) for result in found]
    with pytest.raises(SettingsError, match="seeds: 0 is out of range"):
        spacenet.run(cloud_stream(), seeds=0)


def test_callbacks_may_depend_on_the_job() -> None:
    seen: list[str] = []

    class Note(spacenet.Callback):
        def __init__(self, job: Job) -> None:
            self.label = job.label

        def on_run_end(self, metrics: dict[str, Any]) -> None:
            seen.append(self.label)

    spacenet.run(cloud_stream(), "naive", seeds=2, workers=1, callbacks=lambda job: [Note(job)], **QUICK)
    assert seen == ["naive seed 0", "naive seed 1"]


def test_callbacks_that_would_not_be_called_are_an_error() -> None:
    with pytest.raises(SettingsError, match="pass workers=1"):
        spacenet.run(cloud_stream(), "naive", seeds=2, workers=2, callbacks=[Never()], **QUICK)
    with pytest.raises(SettingsError, match="one device only"):
        spacenet.run(cloud_stream(), "naive", devices=2, callbacks=[Never()], **QUICK)


def test_an_error_in_a_callback_stops_the_run_and_is_the_cause() -> None:
    class Bad(spacenet.Callback):
        def on_task_end(self, record: Record) -> None:
            raise ZeroDivisionError("mine")

    with pytest.raises(UnexpectedError, match="ZeroDivisionError: mine") as raised:
        spacenet.run(cloud_stream(), "naive", callbacks=[Bad()], **QUICK)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_full_network_says_what_was_learned() -> None:
    with pytest.raises(SpaceFull, match="hidden2 is full") as raised:
        spacenet.run(cloud_stream(), **{**QUICK, **SPACE, "hidden": (30, 16)})
    result = raised.value.result
    assert isinstance(result, RunResult)
    assert result.matrix.shape == (2, 3)
    assert "hidden2 is full" in repr(result) or result.metrics["stopped"]
    assert result.to_frame().shape == (2, 2)


def test_a_full_network_stays_full_when_the_run_is_continued(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**QUICK, **SPACE, "hidden": (30, 16), "out": tmp_path / "run"}
    raised = []
    for _ in range(2):
        with pytest.raises(SpaceFull, match="hidden2 is full") as error:
            spacenet.run(cloud_stream(), **settings)
        raised.append(error.value)
    first, second = (each.result.metrics for each in raised)
    assert first == second  # with its times, so it was not learned again


def own_method() -> type[Method]:
    """A class that only this process knows, as one of a notebook."""

    class Own(Naive):
        """Fine-tuning of mine."""

        name = "my-method"

    return Own


def test_a_method_class_can_be_passed_itself_also_to_workers() -> None:
    plain = spacenet.run(cloud_stream(), "naive", seed=1, **QUICK)
    found = spacenet.run(cloud_stream(), own_method(), seeds=2, workers=2, **QUICK)
    assert [result.method for result in found] == ["my-method"] * 2
    assert found[1].matrix.tolist() == plain.matrix.tolist()
    assert spacenet.run(cloud_stream(), own_method(), **QUICK).method == "my-method"  # a cell that is run again


def test_a_net_can_be_passed_as_a_function_also_to_workers() -> None:
    def my_net(input_shape: tuple[int, ...], hidden: tuple[int, ...] = (30, 20)) -> Blueprint:
        return build_mlp(input_shape, hidden)

    options = {key: value for key, value in QUICK.items() if key != "hidden"} | {"learning_rate": 0.05}
    plain = spacenet.run(cloud_stream(), "naive", **{**QUICK, "hidden": (30, 20), "learning_rate": 0.05})
    assert spacenet.run(cloud_stream(), "naive", net=my_net, **options).matrix.tolist() == plain.matrix.tolist()
    found = spacenet.run(cloud_stream(), "naive", net=my_net, seeds=2, workers=2, **options)
    assert [result.config.model.net.name for result in found] == ["my-net"] * 2
    assert found[0].matrix.tolist() == plain.matrix.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epoch": 3}, "unknown setting of spacenet 'epoch', did you mean 'epochs'"),
        ({"lr": 0.1}, "unknown setting of spacenet 'lr', did you mean 'learning_rate'"),
        ({"sed": 1}, "unknown setting of spacenet 'sed', did you mean 'seed'"),
        ({"class_per_task": 5}, "unknown setting of spacenet 'class_per_task', did you mean 'classes_per_task'"),
        ({"method": "spacnet"}, "unknown method 'spacnet', did you mean 'spacenet'"),
        ({"stream": "split-mnits"}, "unknown stream 'split-mnits', did you mean 'split-mnist'"),
        ({"net": "small-cnm"}, "unknown net 'small-cnm', did you mean 'small-cnn'"),
        ({"preset": "mpl"}, "preset: unknown preset of split-digits 'mpl', did you mean 'mlp'"),
        ({"optimizer": "adm"}, "optimizer: unknown value 'adm', did you mean 'adam'"),
        ({"epochs": 0}, "epochs: 0 is out of range"),
        ({"config": {"trainin": {}}}, "unknown section 'trainin', did you mean 'training'"),
        ({"seed": -1}, "seed: -1 is out of range"),
    ],
)
def test_mistakes_are_named_with_what_was_meant(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacenet.run(**{"stream": "split-digits", "progress": False, **arguments})


def test_a_cut_belongs_to_a_stream_by_name() -> None:
    with pytest.raises(SettingsError, match="classes_per_task: goes with the name of a stream"):
        spacenet.run(cloud_stream(), classes_per_task=3)


def test_settings_by_name_win_over_a_file_and_that_over_the_preset(place: Path) -> None:
    (place / "mine.toml").write_text('[training]\nepochs = 1\nbatch_size = 20\n[method]\nname = "spacenet"\n')
    options: dict[str, Any] = {"tasks": "0,1", "progress": False}
    result = spacenet.run("split-digits", config="mine.toml", batch_size=30, **options)
    assert (result.config.model.training.epochs, result.config.model.training.batch_size) == (1, 30)
    again = spacenet.run("split-digits", config=result.config.to_plain(), **options)
    assert again.config == result.config
    assert bits(again) == bits(result)


def test_what_a_run_keeps_can_be_read_by_others(place: Path) -> None:
    result = spacenet.run(cloud_stream(), out="kept", **QUICK, **SPACE)
    assert read_toml(place / "kept" / CONFIG) == result.config.to_plain()
    classifier = spacenet.load(place / "kept" / "model.safetensors")
    assert list(classifier.classes_) == [0, 1, 2, 3, 4, 5]
    assert [path.name for path in place.iterdir()] == ["kept"]
