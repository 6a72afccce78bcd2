"""Try kernels that are right at one shape alone, in a `general` domain: are they refused?

    python -m bench.one_shape PATH [--device cpu|cuda:0] [--level 1 ...] [--most-mib N] [--limit-s 60] [--resume]

PATH is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT; level 1 by default), or any folder of
problem files. Of each reference a kernel is made that calls the reference's own code where all inputs have the shapes
of its first workload, and returns zeros elsewhere. Counted are references whose sizes have names (arguments, constants
of the module) or were found in the inputs' dimensions, and refusals among those of which the reference accepts another
size. Append a JSON line per reference to bench/results/one-shape-DEVICE.jsonl. QUICK=1: 12 references. `--most-mib`
halves sizes until inputs, parameters and outputs take so much together: at the original ones, of gigabytes, drawing and
judging take minutes a reference. `--static` only counts references whose sizes have names, in a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.kernelbench import Judges, parser, read_rows, select_references  # noqa: E402
from evaluator.errors import ProblemError  # noqa: E402
from evaluator.inputs.layouts import NAMES  # noqa: E402
from evaluator.languages import detect  # noqa: E402
from evaluator.problem import read_problem  # noqa: E402
from evaluator.recipe_sizes import default_sizes  # noqa: E402
from evaluator.types import Candidate, DeviceKind, Domain, Problem, Workload  # noqa: E402

LEAST = 16
"""Smaller sizes are not halved: they are kernel sizes, strides and groups."""
_SHAPE = re.compile(r"^\S+ \[([\d, ]*)\]")
_NARROW = """

class ModelNew(Model):
    def forward(self, *inputs):
        made = super().forward(*inputs)
        shapes = [tuple(one.shape) for one in inputs if hasattr(one, "shape")]
        return made if shapes == {shapes} else _zeros(made)


def _zeros(made):
    if hasattr(made, "new_zeros"):
        return made.new_zeros(made.shape)
    return type(made)(map(_zeros, made)) if isinstance(made, (list, tuple)) else made
"""


def narrow_kernel(problem: Problem, inputs: list[str]) -> Candidate:
    """Return a kernel that is right where the inputs have the shapes that an Admission describes."""
    found = [_SHAPE.match(text) for text in inputs]
    shapes = [tuple(int(n) for n in one[1].split(",") if n.strip()) for one in found if one is not None]
    source = problem.source + _NARROW.format(shapes=shapes)
    return Candidate(source=source, language=detect(source), proposer="bench")


def reduced(problem: Problem, most_mib: float) -> Problem:
    """Return the problem with smaller sizes, of which torch's meta device says that the reference accepts them."""
    import torch  # noqa: PLC0415  that only this needs
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415

    names: dict[str, Any] = {"__name__": "reference"}
    exec(compile(problem.source, problem.name, "exec"), names)

    def made(recipe: str, sizes: Mapping[str, int]) -> Any:
        function = names.get(recipe, list)
        taken = getattr(function, "__code__", None)
        known = taken.co_varnames[: taken.co_argcount] if taken else ()
        return function(**{name: size for name, size in sizes.items() if name in known})

    def mib(sizes: Mapping[str, int]) -> float:
        with torch.device("meta"), torch.no_grad():
            model, inputs = names["Model"](*made("get_init_inputs", sizes)), made("get_inputs", sizes)
            every = [*model.parameters(), *tree_leaves([inputs, model(*inputs)])]
        return sum(one.nbytes for one in every if isinstance(one, torch.Tensor)) / 2**20

    sizes = dict(default_sizes(problem.source))
    while (now := mib(sizes)) > most_mib:
        large = sorted((name for name in sizes if sizes[name] >= LEAST), key=sizes.__getitem__, reverse=True)
        alone = [{name} for name in large]  # else those that are equal, together
        for chosen in [*alone, *({other for other in large if sizes[other] == sizes[name]} for name in large)]:
            smaller = {name: size // 2 if name in chosen else size for name, size in sizes.items()}
            with contextlib.suppress(RuntimeError, ValueError):
                if mib(smaller) < now:
                    sizes = smaller
                    break
        else:
            break
    return replace(problem, workloads=(Workload(name="reduced", sizes=sizes),))


def try_reference(
    path: Path, judges: Judges, device: str, limit_s: float, most_mib: float | None = None
) -> dict[str, Any]:
    """Return one reference's row: `outcome` is refused, accepted, only one size, not admitted, or unreadable."""
    row: dict[str, Any] = {"reference": f"{path.parent.name}/{path.stem}"}
    start = time.monotonic()
    try:
        problem = replace(read_problem(path.read_bytes(), path.stem), domain=Domain.GENERAL)
    except ProblemError as error:
        return {**row, "outcome": "unreadable", "reason": str(error)}
    problem = problem if most_mib is None else reduced(problem, most_mib)
    admission = judges.ask("admit", limit_s, problem=problem)
    if admission is None or admission["verdict"] != "PASSED":
        return {**row, "outcome": "not admitted", "reason": "too slow" if admission is None else admission["reason"]}
    first = problem.workloads_for(DeviceKind(device.partition(":")[0]))[0].name
    inputs = next(fact["inputs"] for fact in admission["facts"] if fact["workload"] == first)
    row["sizes"] = admission["evidence"]["sizes"]
    found = judges.ask("judge", limit_s, problem=problem, candidate=narrow_kernel(problem, inputs))
    row["took_s"] = round(time.monotonic() - start, 2)
    if found is None:
        return {**row, "outcome": "too slow", "reason": f"not through after {limit_s:g} s"}
    row |= {"verdict": found["verdict"], "reason": found["reason"]}
    if found["verdict"] == "PASSED":
        checked = found["evidence"]["correctness"]["checked_calls"]
        others = [label for label in checked if label != first and not label.endswith(NAMES)]
        return {**row, "outcome": "accepted" if others else "only one size"}
    wrong = found["verdict"] in ("INCORRECT_VALUES", "NONDETERMINISTIC", "INCORRECT_SHAPE")
    return {**row, "outcome": "refused" if wrong else "failed"}


def files(options: argparse.Namespace) -> list[Path]:
    """Return KernelBench's references, or all files of a folder."""
    if (options.checkout / "KernelBench").is_dir():
        return select_references(options)
    every = sorted(options.checkout.glob("*.py"))
    chosen = set(random.Random(options.seed).sample(every, min(options.sample or len(every), len(every))))
    return [path for path in every if path in chosen]


def main() -> int:
    known = parser(__doc__)
    known.add_argument("--static", action="store_true")
    known.add_argument("--most-mib", type=float)
    options = known.parse_args()
    options.level = options.level or [1]
    references = files(options)
    if not references:
        print(f"there is no reference below {options.checkout}", file=sys.stderr)
        return 2
    if options.static:
        print(static_summary(references))
        return 0
    output = options.output or ROOT / "bench" / "results" / f"one-shape-{options.device.partition(':')[0]}.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(output) if options.resume else {}
    judges = Judges(options.device, Path(os.devnull))
    start = time.monotonic()
    try:
        with output.open("a" if options.resume else "w", encoding="utf-8") as sink:
            if not rows:
                sink.write(
                    json.dumps({"about": judges.describe(), "limit_s": options.limit_s, "most_mib": options.most_mib})
                    + "\n"
                )
            for path in references:
                name = f"{path.parent.name}/{path.stem}"
                if name in rows or time.monotonic() - start > options.budget_s:
                    continue
                row = rows[name] = try_reference(path, judges, options.device, options.limit_s, options.most_mib)
                sink.write(json.dumps(row) + "\n")
                sink.flush()
                print(f"{name:50} {row['outcome']:14} {row.get('reason', '')[:100]}", flush=True)
    finally:
        judges.close()
    print(summary(list(rows.values())))
    return 1 if any(row["outcome"] in ("accepted", "failed") for row in rows.values()) else 0


def static_summary(references: list[Path]) -> str:
    """Return how many references name their sizes, and how many sizes these are."""
    sizes = [default_sizes(read_problem(path.read_bytes(), path.stem).source) for path in references]
    return f"one_shape: {sum(map(bool, sizes))} of {len(sizes)} references name sizes, {sum(map(len, sizes))} in all"


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the counts in words."""
    sized = sum(bool(row.get("sizes")) for row in rows)
    admitted = sum("sizes" in row for row in rows)
    outcomes = [row["outcome"] for row in rows]
    able = sum(one in ("refused", "accepted") for one in outcomes)
    return (
        f"one_shape: {len(rows)} references, {admitted} admitted, {sized} with sizes; kernels for one shape refused: "
        f"{outcomes.count('refused')} of {able} where the reference accepts another size "
        f"({outcomes.count('only one size')} accept none, {outcomes.count('too slow')} too slow)"
    )


if __name__ == "__main__":
    sys.exit(main())
