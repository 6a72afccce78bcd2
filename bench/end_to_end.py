r"""Put kernels back into a model, and compare whole calls with and without them, side by side.

    python -m bench.end_to_end SCRIPT FOLDER PART=KERNEL.py ... [--rounds 24] [--threads 1] [--tolerance 1e-4] \
        [-- ARGUMENTS]

FOLDER is one that `warpwright capture` wrote. SCRIPT defines `model` and `call()`, which calls it; it is run under the
name `bench`, with the ARGUMENTS. Rounds alternate. One thread on a CPU is timed by the processor time of this process,
so that other work on the machine hardly disturbs it; a GPU, or several threads, by the time that passes until all work
is done.

Printed is one JSON line: milliseconds a call before and after, the median ratio with a 95 % interval, the clock, the
page faults of a call, the largest relative difference of an output (the norm of the difference over the output's), the
places that were replaced, and how many calls of these the kernels answered in a call. Exits 1, with the reason, where
outputs differ by more than `--tolerance`, or a kernel was put back nowhere or answered nothing: the ratio then says
nothing of the kernels.

On a CPU run it twice, the second time with MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824, as the
judge times: glibc else maps large tensors anew in each call, and the page faults of the model cost more than many a
kernel saves.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

TOLERANCES = {"torch.bfloat16": 5e-2, "torch.float16": 1e-2}  # of whole models, by their coarsest dtype
USUAL_TOLERANCE = 1e-4

Clock = Callable[[], float]


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def measure(
    call: Callable[[], Any], swap: Callable[[bool], None], rounds: int, clock: Clock = time.process_time
) -> dict[str, Any]:
    """Return the medians of both sides, and of their ratios with an interval. `swap` puts the kernels in or out."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    faulted: dict[bool, list[int]] = {False: [], True: []}
    for number in range(rounds + 2):
        for replaced in (False, True) if number % 2 else (True, False):
            swap(replaced)
            before, start = faults(), clock()
            call()
            taken = clock() - start
            if number >= 2:  # the first ones warm up
                spent[replaced].append(taken * 1e3)
                faulted[replaced].append(faults() - before)
    ratios = [own / ours for own, ours in zip(spent[False], spent[True], strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "before_ms": round(statistics.median(spent[False]), 3),
        "after_ms": round(statistics.median(spent[True]), 3),
        "ratio": round(statistics.median(ratios), 4),
        "interval": [round(medians[50], 4), round(medians[1949], 4)],
        "page_faults": [int(statistics.median(faulted[side])) for side in (False, True)],
    }


def tensors(made: Any, torch: Any) -> list[Any]:
    """Return the tensors of an output: one, or those in a dict, a list, a tuple or a model's output."""
    if isinstance(made, torch.Tensor):
        return [made]
    parts = made.values() if hasattr(made, "values") else made if isinstance(made, list | tuple) else ()
    return [one for part in parts for one in tensors(part, torch)]


def difference(made: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest norm of a difference over the norm of the expected tensor; infinite where none compare."""
    if len(made) != len(expected) or not expected:
        return float("inf")
    return max(_relative(one, other) for one, other in zip(made, expected, strict=True))


def _relative(made: Any, expected: Any) -> float:
    if made.shape != expected.shape or made.dtype != expected.dtype:
        return float("inf")
    one, other = made.double(), expected.double()
    finite, same = other.isfinite(), (one == other) | (one.isnan() & other.isnan())
    if not same[~finite].all() or not one[finite].isfinite().all():
        return float("inf")
    norm, off = float(other[finite].norm()), float((one - other)[finite].norm())
    return 0.0 if off == 0 else off / norm if norm else float("inf")


def timed_by(model: Any, threads: int, torch: Any) -> tuple[str, Clock]:
    """Return the clock and its name: processor time hides what a GPU does, and adds up threads."""
    if any(one.is_cuda for one in (*model.parameters(), *model.buffers())):

        def after_all_work() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return "wall", after_all_work
    return ("wall", time.perf_counter) if threads > 1 else ("processor", time.process_time)


def tolerance_of(model: Any, outputs: Sequence[Any]) -> float:
    """Return the difference that rounding may make in a model of these dtypes."""
    kinds = {str(one.dtype) for one in (*model.parameters(), *model.buffers(), *outputs)}
    return max((TOLERANCES.get(kind, USUAL_TOLERANCE) for kind in kinds), default=USUAL_TOLERANCE)


def compare(
    model: Any, call: Callable[[], Any], putting: Any, kernels: Mapping[str, str], options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return the row, and why it says nothing of the kernels. `putting` is the module that capture wrote."""
    torch = importlib.import_module("torch")
    expected = [one.clone() for one in tensors(call(), torch)]
    allowed = options.tolerance if options.tolerance is not None else tolerance_of(model, expected)
    noise = difference(tensors(call(), torch), expected)
    if not noise <= allowed:
        return {}, [f"two calls without kernels differ by {noise:.2g}: use .eval() and the same inputs each time"]
    replaced = putting.put_back(model, kernels)
    missing = sorted({*kernels} - {part for _, part in replaced})
    if missing:
        return {}, [f"no module of the model is like {', '.join(missing)}"]
    off = difference(tensors(call(), torch), expected)
    answered = {place: putting.used(model)[place] for place, _ in replaced}
    idle = sorted({part for _, part in replaced} - {part for place, part in replaced if answered[place]})
    forwards = {place: model.get_submodule(place).forward for place, _ in replaced}

    def swap(wanted: bool) -> None:
        putting.undo(model)
        for place, forward in forwards.items() if wanted else ():
            model.get_submodule(place).forward = forward

    name, clock = timed_by(model, options.threads, torch)
    found = measure(call, swap, options.rounds, clock)
    swap(True)
    off = max(off, difference(tensors(call(), torch), expected))
    wrong = [f"the kernel of {part} answered no call: it has other shapes, dtypes or arguments" for part in idle]
    if not off <= allowed:
        wrong.append(f"outputs with kernels differ by {off:.2g} of their norm, more than {allowed:g}")
    allocator = {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}
    row = {**found, "clock": name, "difference": off, "tolerance": allowed, "places": len(forwards),
           "answered": sum(answered.values()), "threads": options.threads, "malloc": allocator}  # fmt: skip
    return row, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", nargs="+", metavar="PART=KERNEL.py")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tolerance", type=float, help="relative difference of outputs (default: by the dtype)")
    given = sys.argv[1:]
    own = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:own])
    sys.argv[1:] = given[own + 1 :]  # the script reads its own
    kernels = dict(one.partition("=")[::2] for one in options.kernels)
    if not all(Path(kernel).is_file() for kernel in kernels.values()):
        parser.error(f"kernels are named PART=KERNEL.py, each a file: {' '.join(options.kernels)}")
    torch = importlib.import_module("torch")  # after the arguments
    torch.set_num_threads(options.threads)
    sys.path[:0] = [str(path.resolve()) for path in (options.script.parent, options.folder)]
    defined = runpy.run_path(str(options.script), run_name="bench")
    putting = importlib.import_module("put_back")
    if not {"model", "call"} <= {*defined}:
        parser.error(f"{options.script} must define model, and call(), which calls it")
    for kind in {type(module) for module in defined["model"].modules()}:
        if kind.__module__ == "bench":  # the script's own classes, which `capture` saw in __main__
            kind.__module__ = "__main__"
    with torch.no_grad():
        row, wrong = compare(defined["model"], defined["call"], putting, kernels, options)
    if row:
        print(json.dumps(row))
    for line in wrong:
        print(f"end_to_end: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
