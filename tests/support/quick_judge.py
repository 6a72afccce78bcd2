"""The real judge with short rounds: for tests that look at what comes of a verdict, and not at times.

It is `python -m evaluator serve` in all else: stages, cages, fresh processes, and rounds to confirm in, since a
confirmation must hold on a busy machine, too.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

COMMAND = f"{sys.executable} {Path(__file__).resolve()}"
"""The value of WARPWRIGHT_JUDGE_COMMAND for this judge."""


def main() -> int:
    """The exit status of the judge. What is imported here loads torch."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from evaluator import cli
    from evaluator.stages import baseline, judge, profile
    from tests.evaluator.rooms import QUICK

    judge._JUDGE_RULES = QUICK
    profile._RULES = QUICK
    baseline._RULES = replace(baseline._RULES, round_us=QUICK.round_us, budget_s=QUICK.budget_s)
    return cli.main(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
