"""Optimise an example on this machine: `python scripts/demo.py [--seconds S] [--problem FILE]`, or `make demo`.

The example is one that gains on the device at hand. A run without a champion is an answer as well: the exit status is
then 0, too, and the last lines say what was found out. Other failures keep the status of `warpwright optimize`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from warpwright.cli.device import default_device, kind_of  # noqa: E402  a script's folder is on the path, not its parent
from warpwright.errors import ExitCode  # noqa: E402

EXAMPLES = {"cpu": "bias_gelu", "cuda": "softmax_scale_mask"}
"""torch.compile writes a good bias + GELU for a GPU: there is nothing to gain there."""
NO_CHAMPION = """
No kernel was confirmed to be faster than the fastest baseline: that is the answer of this run, not a fault.
Give it more time (make demo SECONDS_TO_SEARCH=180), another problem (make demo PROBLEM=examples/problems/NAME.py),
or a model to ask (docs/guide/models.md)."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=65.0)
    parser.add_argument("--problem", type=Path, help="default: an example that gains on this device")
    options = parser.parse_args()
    problem = options.problem or Path("examples", "problems", f"{EXAMPLES[kind_of(default_device())]}.py")
    best = Path("out", f"{problem.stem}_best.py")
    best.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "warpwright", "optimize", str(problem), "-o", str(best)]
    code = subprocess.run([*command, "--seconds", f"{options.seconds:g}"], check=False).returncode
    if code == ExitCode.NO_IMPROVEMENT:
        print(NO_CHAMPION)
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
