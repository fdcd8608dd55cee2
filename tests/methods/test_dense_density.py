import torch

from spacenet.methods.dense_density import DenseDensity
from spacenet.methods.density.densities import scores
from spacenet.methods.shared.class_statistics import extract_features
from tests.methods.support import TRAINING, accuracy, learn, make, small_stream


def dense_density(**settings: object) -> DenseDensity:
    method = make(DenseDensity, settings)
    assert isinstance(method, DenseDensity)
    return method


def test_only_the_first_task_is_trained() -> None:
    method, stream = dense_density(), small_stream()
    assert len(learn(method, stream[:1])) == TRAINING.epochs
    trained = {name: tensor.clone() for name, tensor in method.network_state().items()}
    assert learn(method, list(stream)[1:]) == []
    assert all(torch.equal(tensor, trained[name]) for name, tensor in method.network_state().items())
    assert sum(accuracy(method, stream)) / 3 > 0.7


def test_densities_of_old_classes_do_not_change() -> None:
    method, stream = dense_density(), small_stream()
    learn(method, stream[:2])
    before = method.predict(stream[0].test.x)
    learn(method, list(stream)[2:])
    assert torch.equal(method.predict(stream[0].test.x)[:, :4], before)


def test_the_statistics_are_those_of_spacenet_density_on_the_networks_features() -> None:
    method, stream = dense_density(components=1, directions=3), small_stream()
    learn(method, stream)
    x = stream[1].test.x
    with torch.no_grad():
        h = extract_features(method.blueprint, method.params, x)
    assert h.shape == (len(x), 60)
    again = method.settings.build_densities(whiten=True)
    for task in stream:
        with torch.no_grad():
            features = extract_features(method.blueprint, method.params, task.train.x)
        again.add(features, task.train.y, task.classes, method.rng("summaries", task.index))
    assert torch.equal(method.predict(x), scores(again.compute_params(), h))


def test_statistics_are_memory() -> None:
    method = dense_density()
    learn(method, small_stream())
    assert method.extra_bytes() == sum(tensor.nbytes for tensor in method.densities.tensors().values())
