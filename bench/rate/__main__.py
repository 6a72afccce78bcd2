"""Run `python -m bench.rate`: see `bench.rate.bench`."""

import sys

from bench.rate.bench import main

if __name__ == "__main__":
    sys.exit(main())
