"""The real judge with short rounds: for tests that look at what comes of a verdict, and not at times.

It is `python -m evaluator serve` in all else: stages, cages, fresh processes, and rounds to confirm in, since a
confirmation must hold on a busy machine, too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

COMMAND = f"{sys.executable} {Path(__file__).resolve()}"
"""The value of WARPWRIGHT_JUDGE_COMMAND for this judge."""


def main() -> int:
    """The exit status of the judge. What is imported here loads torch."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from evaluator.serve import serve
    from tests.evaluator.rooms import SERVED

    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cpu")
    options.add_argument("--builds", action="store_true")
    chosen = options.parse_args()
    return serve(chosen.device, SERVED, builds=chosen.builds)


if __name__ == "__main__":
    sys.exit(main())
