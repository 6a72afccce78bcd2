"""`python -m bench.search`: the comparison."""

from bench.search.compare import main

raise SystemExit(main())
