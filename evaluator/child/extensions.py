"""Keep libraries that torch's extension builder made for a Candidate, so that later children load them.

`load_inline` and `load` of torch.utils.cpp_extension write sources and a build file, run ninja, and import the library.
That takes 30 to 60 seconds, mostly for torch's headers. So before a build, libraries are looked up in the files of an
earlier child of the very same source (`warpwright_native`'s folders).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from evaluator.child import warpwright_native


def cache_builds(builder: Any = None) -> None:
    """Patch a builder (by default torch's, in this process) to reuse libraries; further calls do nothing."""
    builder = builder or importlib.import_module("torch.utils.cpp_extension")
    build = builder._write_ninja_file_and_build_library
    if not hasattr(build, "__wrapped__"):
        builder._write_ninja_file_and_build_library = _keeping(build)


def _keeping(build: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(build)
    def built(name: str, sources: Sequence[str], *rest: Any, build_directory: str, **options: Any) -> None:
        library = Path(build_directory, f"{name}.so")
        kept = f"{_key(name, sources, rest, options)}.so"
        folders = warpwright_native._cache_folders()
        known = next((folder / kept for folder in folders if (folder / kept).exists()), None)
        if known is not None:
            shutil.copyfile(known, library)
            return
        build(name, sources, *rest, build_directory=build_directory, **options)
        folder = warpwright_native._first_writable(folders)
        if library.exists() and folder is not None:  # a standalone program makes no library
            warpwright_native._put_in_place(library.read_bytes(), folder / kept)

    return built


def _key(name: str, sources: Sequence[str], rest: Sequence[Any], options: dict[str, Any]) -> str:
    parts = [name, torch.__version__, warpwright_native._machine(), repr(rest), repr(sorted(options.items()))]
    found = hashlib.sha256("\0".join(parts).encode())
    for source in sources:
        found.update(hashlib.sha256(Path(source).read_bytes()).digest())
    return found.hexdigest()[:32]
