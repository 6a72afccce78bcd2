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
    """A folder with a subfolder for each compiled kernel, or if `flat` with files. `variable` names it to the compiler.

    `suffixes` are those of the files that a later child can use. In a job's folder they lie below `name`.
    """

    name: str
    variable: str
    folder: str
    suffixes: tuple[str, ...]
    flat: bool = False

    def here(self) -> Path:
        """Return the folder in this child."""
        return Path(os.environ.get(self.variable, self.folder))

    def folders(self) -> list[Path]:
        """Return the folders with files in this child."""
        return [path for path in [self.here()] if path.is_dir()] if self.flat else sorted(self.here().glob("*/"))


CACHES = (
    CompilerCache("triton", "TRITON_CACHE_DIR", "/tmp/triton", (".cubin", ".json", ".so")),
    CompilerCache("cutile", "CUDA_TILE_CACHE_DIR", "/tmp/cutile/cubins", (".db",), flat=True),
)


def restore() -> None:
    """Copy the job's files into the caches: compilers write there, and a job's folder is read-only."""
    job = Path(os.environ.get("WARP_JOB", "/job"))
    for cache in CACHES:
        given = job / cache.name
        if given.is_dir():
            shutil.copytree(given, cache.here().parent if cache.flat else cache.here(), dirs_exist_ok=True)


def kept() -> Iterator[tuple[str, list[Path]]]:
    """Yield the kernels in all caches: their place in a job's folder, and their files."""
    for cache in CACHES:
        for folder in cache.folders():
            files = [path for path in sorted(folder.iterdir()) if path.suffix in cache.suffixes]
            yield f"{cache.name}/{folder.name}", files
