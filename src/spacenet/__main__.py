"""`python -m spacenet`: the same as the `spacenet` command."""

import sys

from spacenet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
