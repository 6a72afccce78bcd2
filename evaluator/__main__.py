"""Entry point of `python -m evaluator`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from evaluator.collector import paused_collector
from evaluator.devices import pools_ahead


def run(arguments: Sequence[str]) -> int:
    """Begin to start what `serve` needs, then import the judge and with it torch, and run the command.

    `doctor` and `work` need neither: the judges of a bundle are processes of their own.
    """
    serves = arguments[:1] == ["serve"] and "--device" in arguments[:-1]
    device = arguments[arguments.index("--device") + 1] if serves else ""
    ahead = pools_ahead.begin(device, builds="--builds" in arguments)
    with paused_collector():
        from evaluator.cli import main  # noqa: PLC0415  what begins ahead goes first

        if arguments[:1] not in (["doctor"], ["work"]):
            importlib.import_module("evaluator.judging")
    return main(arguments, ahead=ahead)


try:
    sys.exit(run(sys.argv[1:]))
except KeyboardInterrupt:
    sys.exit(130)
