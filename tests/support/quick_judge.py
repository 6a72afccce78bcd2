"""The real judge with short rounds: for tests that look at what comes of a verdict, and not at times.

It is `python -m evaluator serve` in all else: stages, cages, fresh processes, and rounds to confirm in, since a
confirmation must hold on a busy machine, too. But eager is the only Baseline, a confirmation has half of the usual
pairs of processes and asks to be sure to 95 %, and nothing is looked at closely: where others use the judge's core,
looks find nothing, and what was not looked at is not promoted. tests/evaluator/stages/test_baseline.py compiles,
test_confirm.py and tests/evaluator/timing look and ask for all.
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
    from evaluator.timing import bench
    from evaluator.timing.integrity import CLOSE_LOOKS
    from tests.evaluator.rooms import SERVED

    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cpu")
    options.add_argument("--builds", action="store_true")
    chosen = options.parse_args()
    ComparatorCache.modes = lambda self: ("eager",)
    bench.CHECKS = tuple(check for check in bench.CHECKS if check.name not in CLOSE_LOOKS)
    protocol = replace(SERVED, process_pairs=4, promotion=replace(SERVED.promotion, confidence=0.95))
    return serve(chosen.device, protocol, builds=chosen.builds)


if __name__ == "__main__":
    sys.exit(main())
