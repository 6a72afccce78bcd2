"""Put kernels back into a model, and compare whole calls with and without them, side by side.

    python -m bench.end_to_end SCRIPT FOLDER PART=KERNEL.py ... [--rounds 24] [--threads 1]

FOLDER is one that `warpwright capture` wrote. SCRIPT defines `model` and `call()`, which calls it; it is run under the
name `bench`. Rounds alternate, and count the processor time of this process, so that other work on the machine hardly
disturbs them. Printed is one JSON line: milliseconds a call before and after, the median ratio with a 95 % interval,
the page faults of a call, the largest difference of the first output, and the places that were replaced. Run it twice,
the second time with MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824, as the judge times: glibc
else maps large tensors anew in each call, and the page faults of the model cost more than many a kernel saves.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def measure(call: Callable[[], Any], swap: Callable[[bool], None], rounds: int) -> dict[str, Any]:
    """Return the medians of both sides, and of their ratios with an interval. `swap` puts the kernels in or out."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    faulted: dict[bool, list[int]] = {False: [], True: []}
    for number in range(rounds + 2):
        for replaced in (False, True) if number % 2 else (True, False):
            swap(replaced)
            before, start = faults(), time.process_time()
            call()
            taken = time.process_time() - start
            if number >= 2:  # the first ones warm up
                spent[replaced].append(taken * 1e3)
                faulted[replaced].append(faults() - before)
    ratios = [own / ours for own, ours in zip(spent[False], spent[True], strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "before_ms": round(statistics.median(spent[False]), 2),
        "after_ms": round(statistics.median(spent[True]), 2),
        "ratio": round(statistics.median(ratios), 4),
        "interval": [round(medians[50], 4), round(medians[1949], 4)],
        "page_faults": [int(statistics.median(faulted[side])) for side in (False, True)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", nargs="+", metavar="PART=KERNEL.py")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import torch  # noqa: PLC0415  after the arguments

    torch.set_num_threads(options.threads)
    defined = runpy.run_path(str(options.script), run_name="bench")
    model, call = defined["model"], defined["call"]
    sys.path.insert(0, str(options.folder))
    putting = importlib.import_module("put_back")
    with torch.no_grad():
        expected = _first(call(), torch)
        replaced = putting.put_back(model, dict(one.split("=", 1) for one in options.kernels))
        kernels = {place: model.get_submodule(place).forward for place, _ in replaced}
        difference = float((_first(call(), torch) - expected).abs().max())

        def swap(wanted: bool) -> None:
            putting.undo(model)
            for place, forward in kernels.items() if wanted else ():
                model.get_submodule(place).forward = forward

        found = measure(call, swap, options.rounds)
    allocator = {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}
    row = {**found, "difference": difference, "places": len(kernels), "threads": options.threads, "malloc": allocator}
    print(json.dumps(row))
    return 0


def _first(made: Any, torch: Any) -> Any:
    return (
        made
        if isinstance(made, torch.Tensor)
        else _first(next(iter(made.values() if hasattr(made, "values") else made)), torch)
    )


if __name__ == "__main__":
    sys.exit(main())
