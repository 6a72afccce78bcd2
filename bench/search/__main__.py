"""Run the comparison: `python -m bench.search`."""

from bench.search.compare import main

raise SystemExit(main())
