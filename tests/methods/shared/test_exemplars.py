import pytest
import torch

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.methods.er import ER
from spacenet.methods.icarl import ICaRL
from spacenet.methods.shared.exemplars import ExemplarMethod, ExemplarSettings
from spacenet.training.loop import learn_task
from tests.methods.support import make, small_stream

each = pytest.mark.parametrize("kind", [ER, ICaRL])
SHORT = TrainingConfig(epochs=1, batch_size=10, learning_rate=0.1)


@each
def test_the_memory_keeps_its_size_and_every_class_gives_up_its_last_samples(kind: type[ExemplarMethod]) -> None:
    method, before = make(kind, {"memory_size": 26}), torch.zeros(0)
    for task, per_class in zip(small_stream(), (13, 6, 4), strict=True):
        learn_task(method, task, SHORT, on_batch=lambda d, t: None, on_epoch=lambda e, o: None)
        assert method.memory.samples().y.bincount().tolist() == [per_class] * task.classes.stop
        first = method.memory.rows[0].reshape(2, per_class)
        if len(before):
            assert torch.equal(first, before[:, :per_class])
        before = first


@each
def test_a_class_smaller_than_its_share_is_kept_whole(kind: type[ExemplarMethod]) -> None:
    method, task = make(kind), small_stream()[0]
    learn_task(method, task, SHORT, on_batch=lambda d, t: None, on_epoch=lambda e, o: None)
    assert sorted(method.memory.rows[0].tolist()) == list(range(60))


@each
def test_a_memory_too_small_is_refused(kind: type[ExemplarMethod]) -> None:
    with pytest.raises(SettingsError, match="memory_size: 5 samples cannot be shared by 6 classes"):
        make(kind, {"memory_size": 5}).check(small_stream())
    assert make(kind, {"memory_size": 6}).check(small_stream()) == []
    with pytest.raises(SettingsError, match="memory_size: 0"):
        ExemplarSettings(memory_size=0)
