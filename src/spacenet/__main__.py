"""`python -m spacenet`: the same as the `spacenet` command."""

from spacenet.cli.main import run_and_exit

if __name__ == "__main__":
    run_and_exit()
