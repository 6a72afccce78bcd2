"""The plain attributes of modules, by which modules of one class compute different things.

This file has no imports of ours: its text is put at the end of put_back.py.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch


def settings_of(module: torch.nn.Module) -> dict[str, str]:
    """Return the attributes of a module and of its parts as text, by their names, without parameters and buffers."""
    usual = {*vars(torch.nn.Module()), "forward"}
    found = {}
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in usual:
                text = _as_text(value)
                short = text if len(text) <= 200 else hashlib.sha256(text.encode()).hexdigest()
                found[f"{path}.{name}" if path else name] = short
    return found


def _as_text(value: Any, depth: int = 0) -> str:
    """Return equal texts for equal plain values, tensors, lists and functions; of other objects the class alone."""
    if isinstance(value, torch.Tensor):
        kind = f"{value.dtype}{tuple(value.shape)}"
        if value.numel() > 1024 or value.is_meta:
            return kind
        return f"{kind}{value.detach().cpu().tolist()}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype | torch.device):
        return repr(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if depth < 4 and isinstance(value, list | tuple):
        return f"{kind}[{', '.join(_as_text(one, depth + 1) for one in value)}]"
    if depth < 4 and isinstance(value, dict):
        pairs = (f"{key!r}: {_as_text(one, depth + 1)}" for key, one in value.items())
        return f"{kind}{{{', '.join(pairs)}}}"
    if depth < 4 and hasattr(value, "__dict__") and not callable(value):
        return f"{kind}({_as_text(vars(value), depth + 1)})"
    return f"{kind} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


FUNCTIONS = (settings_of, _as_text)
