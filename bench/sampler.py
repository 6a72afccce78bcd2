"""Profile a module's main thread: `python -m bench.sampler FILE MODULE [ARGUMENTS]`.

Run a module as `python -m` does, sample its main thread every few milliseconds, and write JSON lines at its end: the
seconds by function of this repository, with callees and without. Unlike cProfile it hardly slows the module down and
keeps threads apart.
"""

from __future__ import annotations

import collections
import json
import runpy
import sys
import threading
import time
from pathlib import Path
from types import FrameType

ROOT = str(Path(__file__).resolve().parents[1])
PERIOD_S = 0.004


class Sampler:
    """Samples one thread until it is stopped."""

    def __init__(self, thread_id: int) -> None:
        self._thread_id = thread_id
        self._done = threading.Event()
        self.inclusive_s: collections.Counter[str] = collections.Counter()
        self.own_s: collections.Counter[str] = collections.Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self, target: Path) -> None:
        """Write the samples, most time first."""
        self._done.set()
        self._thread.join()
        rows = [
            {"where": where, "inclusive_s": round(spent_s, 3), "own_s": round(self.own_s[where], 3)}
            for where, spent_s in self.inclusive_s.most_common()
        ]
        target.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._done.wait(PERIOD_S):
            now = time.perf_counter()
            self._count(sys._current_frames().get(self._thread_id), now - last)
            last = now

    def _count(self, frame: FrameType | None, spent_s: float) -> None:
        own = True
        seen: set[str] = set()
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(ROOT):
                name = f"{code.co_filename[len(ROOT) + 1 :]}:{code.co_qualname}"
                line = f"{name}:{frame.f_lineno}"
                if own:
                    self.own_s[line] += spent_s
                    own = False
                for key in {name, line} - seen:
                    seen.add(key)
                    self.inclusive_s[key] += spent_s
            frame = frame.f_back


def main() -> None:
    target, module, *arguments = sys.argv[1:]
    sys.argv = [module, *arguments]
    sampler = Sampler(threading.get_ident())
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.stop(Path(target))


if __name__ == "__main__":
    main()
