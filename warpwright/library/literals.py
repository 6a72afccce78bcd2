"""Values as Python text, for a problem file."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

PLAIN = (bool, int, str, bytes, type(None))


def torch() -> Any:
    """Return the torch of this process. Raises TypeError where none is loaded: then nothing given is a tensor."""
    found: ModuleType | None = sys.modules.get("torch")
    if found is None:
        raise TypeError("warpwright.optimize takes functions and modules of PyTorch, which is not imported here")
    return found


def literal(value: Any) -> str | None:
    """Return an expression for a plain value, or None."""
    library = torch()
    if isinstance(value, PLAIN) and type(value) in PLAIN:
        return repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, library.dtype | library.memory_format):
        return repr(value)
    if isinstance(value, library.Size):
        return repr(tuple(value))
    if type(value) in (tuple, list, set, frozenset):
        return _sequence(value)
    if type(value) is dict:
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return None


def _sequence(value: Any) -> str | None:
    items = [literal(item) for item in value]
    if any(item is None for item in items):
        return None
    inside = ", ".join(str(item) for item in items)
    match value:
        case tuple():
            return f"({inside}{',' if len(items) == 1 else ''})"
        case list():
            return f"[{inside}]"
        case frozenset():
            return f"frozenset([{inside}])"
        case _:
            return f"set([{inside}])"
