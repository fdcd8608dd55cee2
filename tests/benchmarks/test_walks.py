from benchmarks.walks import count_calls, count_run, trace_cnn_step, trace_files, trace_partial_fit
from spacenet.nets.images import image_shape
from spacenet.nets.mlp import build_mlp
from spacenet.nets.small_cnn import build_small_cnn


def test_the_files_of_a_call_are_listed_in_order() -> None:
    assert trace_files(lambda: build_small_cnn((3, 8, 8)))[:2] == ["nets/small_cnn.py", "nets/ours.py"]
    assert trace_files(lambda: None) == []


def test_calls_are_counted() -> None:
    assert count_calls(image_shape, lambda: (build_small_cnn((3, 9, 9)), build_small_cnn((9, 9)))) == 4
    assert count_calls(image_shape, lambda: build_mlp((8, 8))) == 0


def test_a_cnn_step_passes_through_six_files() -> None:
    walk = trace_cnn_step()
    assert walk[0] == "training/step.py"
    assert "space/workspace.py" in walk
    assert len(set(walk)) <= 6


def test_a_run_prepares_once_and_reads_no_settings_back() -> None:
    # One method learns; the other is that of the model file, which is read back before it gets its name.
    assert count_run() == {"stream built": 1, "TOML read": 0, "methods built": 2}


def test_partial_fit_builds_one_method() -> None:
    assert trace_partial_fit()[1] == 1
