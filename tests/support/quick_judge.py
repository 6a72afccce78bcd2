"""The real judge with short rounds: for tests that look at what comes of a verdict, and not at times.

It is `python -m evaluator serve` in all else: stages, cages, fresh processes, and rounds to confirm in, since a
confirmation must hold on a busy machine, too. But eager is the only Baseline, and a confirmation has half of the usual
pairs of processes: compilers take most of a short judging. tests/evaluator/stages/test_baseline.py compiles.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

COMMAND = f"{sys.executable} {Path(__file__).resolve()}"
"""The value of WARPWRIGHT_JUDGE_COMMAND for this judge."""


def main() -> int:
    """The exit status of the judge. What is imported here loads torch."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from evaluator.device_session.comparators import ComparatorCache
    from evaluator.serve import serve
    from tests.evaluator.rooms import SERVED

    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cpu")
    options.add_argument("--builds", action="store_true")
    chosen = options.parse_args()
    ComparatorCache.modes = lambda self: ("eager",)
    return serve(chosen.device, replace(SERVED, process_pairs=4), builds=chosen.builds)


if __name__ == "__main__":
    sys.exit(main())
