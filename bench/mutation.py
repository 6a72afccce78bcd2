"""Measure the mutation score: planted bugs must be caught, and correct kernels never rejected. `make bench-mutation`.

    QUICK=1          three judgements of each original instead of 200
    --repeats N      judgements of each original
    --budget-s S     stop after so many seconds; --resume continues where the file of results ends
    --shard I/N      every N-th piece of work, beginning with the I-th (from 1)
    --output FILE    JSON lines, appended to: first the machine, then one line per judgement
    --originals-only the correct kernels alone

On a GPU the originals are the kernels that run there and, to make ten, correct ones of the honest suite.

The judge's own rules apply, not the short ones of the tests. The last line gives the score.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine
from evaluator.serve import make_backend
from evaluator.stages.judge import Judge
from evaluator.types import Evaluation, Verdict
from tests.adversarial import suite
from tests.adversarial.planted_bugs import BUGS, HERE, KERNELS, Bug, as_candidate, original
from tests.evaluator.rooms import eager_only

# A mutant that does not build was planted badly: it counts as not caught.
_ON_GPU = (
    "cuda_plain", "cuda_unordered_atomics", "triton_plain_softmax", "triton_autotuned", "triton_dot_ieee", "split_k",
    "own_graph", "cached_workspace",
)  # fmt: skip
_IN_A_ROW = 5
_NO_CATCH = {Verdict.PASSED, Verdict.BUILD_ERROR, Verdict.INTERNAL_ERROR, Verdict.INVALID_SUBMISSION}


@dataclass(frozen=True, slots=True)
class Piece:
    """One judgement: of an original (`bug` is None) or of a mutant."""

    kernel: str
    bug: Bug | None
    turn: int
    case: suite.Case | None = None  # of the honest suite

    @property
    def key(self) -> str:
        return f"{self.kernel}|{self.bug.name if self.bug else 'original'}|{self.turn}"


def pieces(repeats: int, device: str, *, mutants: bool = True) -> Iterator[Piece]:
    """Return mutants first, then the originals, alternating."""
    kernels = [k for k in KERNELS if _case(k).devices & ({"cpu"} if device == "cpu" else {"cuda", "triton"})]
    honest = [] if device == "cpu" else [case for case in suite.cases("honest") if case.name in _ON_GPU]
    if mutants:
        yield from (Piece(bug.kernel, bug, 0) for bug in BUGS if bug.kernel in kernels)
    for turn in range(repeats):
        yield from (Piece(kernel, None, turn) for kernel in kernels)
        yield from (Piece(f"honest/{case.name}", None, turn, case) for case in honest)


def order_shard(some: Sequence[Piece], shards: int) -> list[Piece]:
    """Return the work of one of so many shards.

    An original is judged several times in a row, since a judge keeps the references of few problems at once. The next
    one follows soon, so that a short budget includes all of them.
    """
    return sorted(some, key=lambda p: (p.bug is None, p.turn // (_IN_A_ROW * shards), p.kernel))


def _case(kernel: str) -> suite.Case:
    return suite.read_case(HERE / f"{kernel}.py")


def judge_piece(judge: Judge, piece: Piece) -> tuple[Evaluation, float]:
    case = piece.case or _case(piece.kernel)
    task = suite.problem(case.problem)
    what = piece.bug.candidate if piece.bug else case.candidate if piece.case else as_candidate(original(piece.kernel))
    begin = time.monotonic()
    found = judge.judge(task, what, eager_only(judge, task))
    return found, time.monotonic() - begin


def _line(piece: Piece, found: Evaluation, took_s: float) -> dict[str, Any]:
    right = found.verdict is Verdict.PASSED if piece.bug is None else found.verdict not in _NO_CATCH
    return {
        "key": piece.key,
        "mutant": piece.bug is not None,
        "right": right,
        "verdict": found.verdict,
        "reason": found.reason[:300],
        "took_s": round(took_s, 3),
    }


def _wanted(options: argparse.Namespace) -> Iterator[Piece]:
    return pieces(options.repeats, options.device, mutants=not options.originals_only)


def _known(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [entry for entry in map(json.loads, lines) if "key" in entry]


def run(options: argparse.Namespace, path: Path) -> list[dict[str, Any]]:
    """Judge the pieces, and append to the file. Return every judgement in it."""
    known = _known(path) if options.resume else []
    done = {entry["key"] for entry in known}
    index, count = map(int, options.shard.split("/"))
    todo = order_shard([p for i, p in enumerate(_wanted(options)) if i % count == index - 1], count)
    end = time.monotonic() + options.budget_s
    judge = Judge(make_backend(options.device))
    try:
        with path.open("a" if options.resume else "w", encoding="utf-8") as file:
            file.write(json.dumps({"seen_on": machine.describe(), "device": options.device}) + "\n")
            for piece in todo:
                if piece.key in done:
                    continue
                if time.monotonic() > end:
                    break
                entry = _line(piece, *judge_piece(judge, piece))
                known.append(entry)
                file.write(json.dumps(entry) + "\n")
                file.flush()
                if not entry["right"]:
                    print(f"WRONG {entry['key']}: {entry['verdict']}: {entry['reason']}", file=sys.stderr)
    finally:
        judge.close()
    return known


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    parser.add_argument("--repeats", type=int, default=3 if os.environ.get("QUICK") else 200)
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--originals-only", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    kind = options.device.partition(":")[0]
    path = options.output or Path(__file__).parent / "results" / f"mutation-{kind}.jsonl"
    found = run(options, path)
    mutants = [entry for entry in found if entry["mutant"]]
    originals = [entry for entry in found if not entry["mutant"]]
    print(
        f"mutation: {sum(e['right'] for e in mutants)} of {len(mutants)} planted bugs caught; "
        f"{sum(not e['right'] for e in originals)} of {len(originals)} judgements rejected a correct kernel"
    )
    return 0 if all(entry["right"] for entry in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
