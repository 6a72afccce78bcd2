"""Entry point of `python -m evaluator`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evaluator.devices import pools_ahead


def run(arguments: Sequence[str]) -> int:
    """Begin to start what `serve` needs, then import the judge and with it torch, and run the command."""
    serves = arguments[:1] == ["serve"] and "--device" in arguments[:-1]
    device = arguments[arguments.index("--device") + 1] if serves else ""
    ahead = pools_ahead.begin(device, builds="--builds" in arguments)
    from evaluator.cli import main  # noqa: PLC0415  it imports torch, which takes seconds

    return main(arguments, ahead=ahead)


sys.exit(run(sys.argv[1:]))
