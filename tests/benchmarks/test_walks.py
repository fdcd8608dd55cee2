from benchmarks.walks import count_calls, trace_cnn_step, trace_files
from spacenet.nets.mlp import build_mlp
from spacenet.nets.shapes import image_shape
from spacenet.nets.small_cnn import build_small_cnn


def test_the_files_of_a_call_are_listed_in_order() -> None:
    assert trace_files(lambda: build_small_cnn((3, 8, 8)))[:2] == ["nets/small_cnn.py", "nets/shapes.py"]
    assert trace_files(lambda: None) == []


def test_calls_are_counted() -> None:
    assert count_calls(image_shape, lambda: (build_small_cnn((3, 8, 8)), build_small_cnn((8, 8)))) == 2
    assert count_calls(image_shape, lambda: build_mlp((8, 8))) == 0


def test_a_cnn_step_passes_through_five_files() -> None:
    walk = trace_cnn_step()
    assert walk[0] == "training/step.py"
    assert "space/workspace.py" in walk
    assert len(set(walk)) <= 5
