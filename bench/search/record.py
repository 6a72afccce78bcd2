"""`python -m bench.search.record PROBLEM --budget-s S [--device D] [--shard K/N] [--resume]`: record a landscape.

Real kernels of an example problem, judged by the real judge: every design of the synthesiser, its Configurations, and
broken variants of each (a constant, an operator or a line changed in the native code), one JSON line a judgement. The
order is fixed by the seed, so shards and later sessions add to each other; a line that is there already is not judged
again with --resume.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.pool import ChildPool
from evaluator.problem import read_problem
from evaluator.schema import from_json, to_json
from evaluator.types import BaselineReport, Candidate, DeviceKind, Evaluation, Problem
from evolution.niche import niche_of
from evolution.tunables import apply_configuration, family_of, read_tunables
from synthesis.capture import capture
from synthesis.strategies import sequence
from workers.errors import JudgeFault
from workers.judge_process import JudgeProcess

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("landscapes")
JUDGE_S = 120.0
MUTANT_EVERY = 5
"""One in so many judgements is of a broken variant."""


@dataclass(frozen=True)
class Item:
    """One kernel to judge. `origin` is the source that a broken variant was made of."""

    candidate: Candidate
    design: str
    broken: bool
    origin: str = ""


def items(problem: Problem, kind: DeviceKind, seed: int, most: int) -> Iterator[Item]:
    """Designs first, then their Configurations in turn, with broken variants among them. Endless but for `most`."""
    rng = random.Random(seed)
    with ChildPool(DeviceKind.CPU) as pool:
        graphs = capture(problem, kind, pool, timeout_s=120.0)
    designs: dict[str, Candidate] = {}
    for draft in itertools.islice(sequence(graphs, kind, seed), 400):
        candidate = Candidate(source=draft.source, language=draft.language)
        designs.setdefault(family_of(draft.source), candidate)
    for candidate in designs.values():
        yield Item(candidate, family_of(candidate.source), broken=False)
    for number in range(most):
        candidate = rng.choice(list(designs.values()))
        tunables, _ = read_tunables(candidate.source)
        configuration = {name: rng.choice(values) for name, values in tunables.items()}
        source = apply_configuration(candidate.source, configuration) if tunables else candidate.source
        broken = number % MUTANT_EVERY == 0
        mutant = mutate(source, rng) if broken else source
        made = Candidate(source=mutant, language=candidate.language)
        yield Item(made, family_of(candidate.source), broken, source if broken else "")


def mutate(source: str, rng: random.Random) -> str:
    """A slip that a person or a model makes: an operator, a constant, or a missing line in the native code."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    texts = [node.value for node in strings if isinstance(node.value, str) and "\n" in node.value and "(" in node.value]
    native = max(texts, key=len, default="")
    lines = [n for n, line in enumerate(native.split("\n")) if re.search(r"[-+*/]=?|\d", line) and ";" in line]
    if not lines:
        return source
    cut = native.split("\n")
    at = rng.choice(lines)
    swap = {"+": "-", "-": "+", "*": "+", "<": "<=", ">": "<"}
    spots = [n for n, letter in enumerate(cut[at]) if letter in swap]
    if spots and rng.random() < 0.7:
        spot = rng.choice(spots)
        cut[at] = cut[at][:spot] + swap[cut[at][spot]] + cut[at][spot + 1 :]
    else:
        del cut[at]
    return source.replace(native, "\n".join(cut), 1)


def line_of(item: Item, evaluation: Evaluation, took_s: float) -> dict[str, object]:
    """What a search needs to know of a judgement."""
    tunables, configuration = read_tunables(item.candidate.source) if not item.broken else ({}, {})
    ratio = evaluation.speedup("fastest") if evaluation.speedups else None
    return {
        "hash": item.candidate.hash,
        "language": item.candidate.language.value,
        "family": item.design,
        "origin": Candidate(source=item.origin, language=item.candidate.language).hash if item.broken else None,
        "niche": str(niche_of(item.candidate.source, item.candidate.language)),
        "tunables": {name: list(values) for name, values in tunables.items()},
        "configuration": configuration,
        "verdict": evaluation.verdict.value,
        "stage": evaluation.stage.value,
        "reason": evaluation.reason[:200],
        "speedup": ratio.value if ratio is not None else None,
        "low": ratio.interval.low if ratio is not None else None,
        "high": ratio.interval.high if ratio is not None else None,
        "device_s": round(sum(evaluation.duration_s.values()), 3),
        "took_s": round(took_s, 3),
    }


def record(options: argparse.Namespace) -> int:
    """Judge until the time is up; returns how many lines were written."""
    kind = DeviceKind.CPU if options.device == "cpu" else DeviceKind.CUDA
    problem = read_problem((ROOT / "examples" / "problems" / f"{options.problem}.py").read_text(), options.problem)
    path = options.output or FOLDER / f"{options.problem}-{kind.value}.jsonl"
    shard, shards = (int(part) for part in options.shard.split("/"))
    old = path.read_text().splitlines() if path.exists() and options.resume else []
    known = {json.loads(line)["hash"] for line in old if "hash" in line[:8]}
    judge, written = JudgeProcess(options.device), 0
    try:
        baseline = judge.request("baseline", deadline_s=600.0, problem=to_json(problem))
        report = from_json(BaselineReport, baseline)
        end = time.monotonic() + options.budget_s  # timing the Baselines is not charged to it
        with path.open("a" if options.resume else "w") as out:
            if not old:
                about = {"problem": options.problem, "problem_hash": problem.hash, "device": to_json(report.device)}
                out.write(json.dumps({**about, "environment": to_json(report.environment)}) + "\n")
            for number, item in enumerate(items(problem, kind, options.seed, 10**6)):
                if time.monotonic() > end:
                    break
                if number % shards != shard or item.candidate.hash in known:
                    continue
                known.add(item.candidate.hash)
                began = time.monotonic()
                asked = {"problem": to_json(problem), "candidate": to_json(item.candidate), "baseline": baseline}
                try:
                    found = from_json(Evaluation, judge.request("judge", deadline_s=JUDGE_S, **asked))
                except JudgeFault as fault:
                    print(f"left out: {fault}", flush=True)
                    continue
                out.write(json.dumps(line_of(item, found, time.monotonic() - began)) + "\n")
                out.flush()
                written += 1
    finally:
        judge.close()
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", help="a file of examples/problems, without .py")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--budget-s", type=float, default=300.0)
    parser.add_argument("--shard", default="0/1", help="K/N: judge only every Nth kernel, from the Kth")
    parser.add_argument("--resume", action="store_true", help="add to what is there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    began = time.monotonic()
    written = record(options)
    print(f"{written} judgements of {options.problem} on {options.device} in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
