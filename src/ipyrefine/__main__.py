"""`python -m ipyrefine`: the command line."""

import sys

from ipyrefine.cli import main

if __name__ == "__main__":
    sys.exit(main())
