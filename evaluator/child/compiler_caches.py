"""Compilers' caches in a child: their files go to later children of the same Candidate.

A language with a compiler that keeps files in a folder of its own has a line in `CACHES`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CompilerCache:
    """A folder with one subfolder for each compiled kernel. `variable` names it to the compiler.

    `suffixes` are those of the files that a later child can use. In a job's folder they lie below `name`.
    """

    name: str
    variable: str
    folder: str
    suffixes: tuple[str, ...]

    def here(self) -> Path:
        """Return the folder in this child."""
        return Path(os.environ.get(self.variable, self.folder))


CACHES = (CompilerCache("triton", "TRITON_CACHE_DIR", "/tmp/triton", (".cubin", ".json", ".so")),)


def restore() -> None:
    """Copy the job's files into the caches: compilers write there, and a job's folder is read-only."""
    job = Path(os.environ.get("WARP_JOB", "/job"))
    for cache in CACHES:
        given = job / cache.name
        if given.is_dir():
            shutil.copytree(given, cache.here(), dirs_exist_ok=True)


def kept() -> Iterator[tuple[str, list[Path]]]:
    """Yield the kernels in all caches: their place in a job's folder, and their files."""
    for cache in CACHES:
        for folder in sorted(cache.here().glob("*/")):
            files = [path for path in sorted(folder.iterdir()) if path.suffix in cache.suffixes]
            yield f"{cache.name}/{folder.name}", files
