"""What compilers made for tests, kept between runs by its content: they take most of the synthesiser's tests.

A file is found again where the same compiler gets the same text and options on the same kind of processor (the keys of
`load_cpp` and of Triton), so a change of what is compiled is compiled and run. `make clean` removes the folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".pytest-built"
MOST_FILES = 300


@functools.cache
def native() -> Path:
    """Return the folder of this machine's C++ compiler; `load_cpp`'s key does not tell its version."""
    program = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or shutil.which("c++") or "none"
    said = subprocess.run([program, "--version"], capture_output=True, check=False).stdout if program != "none" else b""
    return _folder("cpp-" + hashlib.sha256(program.encode() + said).hexdigest()[:12])


@functools.cache
def triton() -> Path:
    """Return the folder of Triton, whose keys tell its version and its assembler's."""
    return _folder("triton")


def _folder(name: str) -> Path:
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    entries = sorted(folder.iterdir(), key=lambda path: path.lstat().st_mtime)
    for old in entries[:-MOST_FILES]:  # a worker that has opened one of them keeps it
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return folder
