"""Give a module built anew the tensors of the original, so that both share them."""

from __future__ import annotations

from typing import Any

from warpwright.library.errors import NotPortable


def adopt(module: Any, original: Any) -> None:
    """Put every parameter and buffer of `original` into `module`. Raises NotPortable where the names differ."""
    for kind, listed in (("_parameters", "named_parameters"), ("_buffers", "named_buffers")):
        given = dict(getattr(original, listed)(remove_duplicate=False))
        own = dict(getattr(module, listed)(remove_duplicate=False))
        if given.keys() != own.keys():
            different = ", ".join(sorted(given.keys() ^ own.keys())[:5])
            raise NotPortable(f"the module that was built again has other weights: {different}")
        for name, tensor in given.items():
            owner, _, last = name.rpartition(".")
            getattr(module.get_submodule(owner), kind)[last] = tensor
