"""python -m synthesis PROBLEM.py --device cpu|cuda [--list] [--number N] [--seed S]

Traces the reference in a cage and prints a Candidate; with --list, one line for each that would be proposed.
Exit status: 0 printed, 1 the synthesiser has nothing for this reference, 2 it could not be read or traced.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from evaluator.errors import ProblemError
from evaluator.problem import read_problem
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.errors import TraceError, Unsupported
from synthesis.graph.capture import capture
from synthesis.strategies import propose, sequence


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m synthesis", description="Write kernels for a reference.")
    parser.add_argument("problem", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--list", action="store_true", help="one line per Candidate that would be proposed")
    parser.add_argument("--number", type=int, default=0, help="which proposal, from 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads that kernels may use")
    options = parser.parse_args(arguments)
    kind = DeviceKind(options.device)
    processor = Processor(options.threads, wide=torch.backends.cpu.get_cpu_capability() == "AVX512")
    try:
        problem = read_problem(options.problem.read_bytes(), options.problem.stem)
        with ChildPool(DeviceKind.CPU) as pool:
            graphs = capture(problem, kind, pool)
    except (OSError, ProblemError, TraceError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        if options.list:
            for number, draft in enumerate(sequence(graphs, kind, options.seed, processor)):
                print(number, draft.language, draft.strategy, dict(draft.configuration))
            return 0
        chosen = propose(graphs, kind, number=options.number, seed=options.seed, processor=processor)
    except Unsupported as error:
        print(error, file=sys.stderr)
        return 1
    if chosen is None:
        print("nothing left to propose", file=sys.stderr)
        return 1
    print(chosen.source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
