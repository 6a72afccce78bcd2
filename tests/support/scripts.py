"""Python text in a process of its own that has torch loaded already: one import for many short scripts.

The processes come of a fork server that has run nothing but the import.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch"])


def run(text: str, folder: Path, timeout_s: float = 100.0) -> tuple[bool, str]:
    """Whether it ran to its end, in a folder, with every warning an error; and what it printed and raised."""
    mine, its = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_main, args=(text, str(folder), its), daemon=True)
    process.start()
    its.close()
    try:
        return mine.recv() if mine.poll(timeout_s) else (False, f"not done within {timeout_s:g} s")
    except EOFError:
        process.join(5)
        return False, f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join(10)
        mine.close()


def _main(text: str, folder: str, answer: Connection) -> None:
    os.chdir(folder)
    sys.path.insert(0, folder)
    warnings.simplefilter("error")
    printed, good = io.StringIO(), True
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        except BaseException:  # noqa: BLE001 - whatever a script ends with is told
            traceback.print_exc()
            good = False
    answer.send((good, printed.getvalue()))
