"""Mistakes in the arguments get a line that says what was probably meant."""

import pytest

from spacenet.cli.main import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rnu", "unknown command 'rnu', did you mean 'run'?"),
        ("run --lr 0.1", "unknown option --lr, did you mean --learning-rate?"),
        ("run --lr=0.1", "unknown option --lr, did you mean --learning-rate?"),
        ("run split-digits -lr 0.1", "unknown option -lr, did you mean --learning-rate?"),
        ("run --learning_rat 0.1", "unknown option --learning-rat, did you mean --learning-rate?"),
        ("run --method EWC", "unknown method 'EWC', did you mean 'ewc'?"),
        ("run --method naive --rewire-fraction 0.3", "--rewire-fraction is a setting of spacenet-rehearsal, spacenet,"),
        ("run MNIST", "unknown stream 'MNIST', did you mean 'split-mnist'?"),
        ("run cifar100", "unknown stream 'cifar100', did you mean 'icifar-100'?"),
        ("run split-digits ewc", "unexpected argument 'ewc', did you mean --method ewc?"),
        ("run --epochs", "--epochs: a value is missing."),
        ("run --epochs three", "--epochs: 'three' is not an integer."),
        ("run --learning-rate x", "--learning-rate: 'x' is not a number."),
        ("run --optimizer adm", "--optimizer: unknown value 'adm', did you mean 'adam'? Choose from sgd, adam."),
        ("compare --method ewc", "unknown option --method, did you mean --methods?"),
        ("compare --epochs 3", "unknown option --epochs; give this setting of the methods as --set epochs=VALUE."),
        ("sweep --epochs 3", "unknown option --epochs; give this setting of the methods as --set epochs=VALUE."),
        ("predict", "missing: MODEL"),
        ("predict --modle x", "unknown option --modle; MODEL is given without an option."),
        ("serve --prot 8000", "unknown option --prot, did you mean --port?"),
        ("report --figure x", "unknown option --figure, did you mean --figures?"),
        ("data", "missing: list or fetch."),
        ("data lst", "unknown data command 'lst', did you mean 'list'?"),
        ("data list --data-dri x", "unknown option --data-dri, did you mean --data-dir?"),
    ],
)
def test_a_mistake_is_one_line(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"spacenet: {message}") or message in err
    assert (out, err.count("\n")) == ("", 1)


def test_other_spellings_of_an_option_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--learning_rate", "0.1", "--epochs", "-1"]) == 2
    assert capsys.readouterr().err == "spacenet: --epochs: -1 is out of range (1 or more)\n"
