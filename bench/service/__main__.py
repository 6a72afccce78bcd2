"""Run `python -m bench.service`: see `bench.service.bench`."""

import sys

from bench.service.bench import main

if __name__ == "__main__":
    sys.exit(main())
