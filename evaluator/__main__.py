"""Entry point of `python -m evaluator`."""

from __future__ import annotations

import sys

from evaluator.cli import main

sys.exit(main())
