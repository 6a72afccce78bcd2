"""Execute a job's file as a module: a reference or a Candidate, in the build stage and in any other."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from evaluator.child import extensions, warpwright_native


def execute(path: Path, name: str) -> ModuleType:
    """Return the module `name`. Let the file's exceptions pass."""
    sys.modules.setdefault("warpwright_native", warpwright_native)
    if b"cpp_extension" in path.read_bytes():
        extensions.cache_builds()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None  # a .py path always has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
