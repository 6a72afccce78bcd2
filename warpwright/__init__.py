"""Turn a slow PyTorch op into a kernel that is proved correct and proved faster.

fast = warpwright.optimize(function_or_module, inputs, seconds=60)   a drop-in, or the original with a warning

@warpwright.kernel                                                   runs the champion for the shapes that it sees
def scaled_softmax(x): ...

Both are loaded when they are first used: importing this package imports neither torch nor an HTTP client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpwright.library.errors import OptimizeWarning
    from warpwright.library.kernels import kernel
    from warpwright.library.optimizing import optimize

__version__ = "0.1.0"
__all__ = ["OptimizeWarning", "__version__", "kernel", "optimize"]

_HOMES = {
    "OptimizeWarning": "warpwright.library.errors",
    "kernel": "warpwright.library.kernels",
    "optimize": "warpwright.library.optimizing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
