"""Python text in a process of its own that has torch loaded already: one import for many short scripts.

The processes come of a fork server that has run nothing but imports: torch, and what the guard of an export imports
when a kernel is constructed, which takes longer than torch itself.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "torch._dynamo"])


@dataclass(frozen=True, slots=True)
class Done:
    """The exit status and output of a file's process; named as subprocess names them."""

    returncode: int
    stdout: str
    stderr: str


def run(text: str, folder: Path, timeout_s: float = 100.0) -> tuple[bool, str]:
    """Run a file in a folder, with every warning an error; return its end, output and exception."""
    done = _done(timeout_s, _text, text, folder)
    return done.returncode == 0, done.stdout + done.stderr


def run_file(path: Path, *arguments: str, timeout_s: float = 100.0) -> Done:
    """`python -W error FILE ARGUMENTS` in the file's folder, but for the import."""
    return _done(timeout_s, _file, path.name, path.parent, arguments)


def _done(timeout_s: float, task: Callable[..., None], what: str, folder: Path, *more: object) -> Done:
    mine, its = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_main, args=(its, task, what, str(folder), *more), daemon=True)
    process.start()
    its.close()
    try:
        if not mine.poll(timeout_s):
            return Done(-1, "", f"not done within {timeout_s:g} s")
        return Done(*mine.recv())
    except EOFError:
        process.join(5)
        return Done(-1, "", f"the process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join(10)
        mine.close()


def _main(answer: Connection, task: Callable[..., None], what: str, folder: str, *more: object) -> None:
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    os.environ["WARPWRIGHT_NATIVE_CACHE"] = str(Path(folder) / "native")
    sys.path.insert(0, folder)
    warnings.simplefilter("error")
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            task(what, *more)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 - whatever a script ends with is told
            traceback.print_exc()
            status = 1
    answer.send((status, out.getvalue(), err.getvalue()))


def _text(text: str) -> None:
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


def _file(name: str, arguments: tuple[str, ...]) -> None:
    sys.argv = [name, *arguments]
    runpy.run_path(name, run_name="__main__")
