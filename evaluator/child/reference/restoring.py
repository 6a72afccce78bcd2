"""Leave a reference's tensors as they were: what one run assigns, in float64 perhaps, is not there in the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_ABSENT = object()


@contextmanager
def restoring_contents(model: torch.nn.Module) -> Iterator[None]:
    """Undo assignments on exit, and changes of buffers in place."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with restoring_tensors(model):
            yield
    finally:
        for buffer, value in before:
            buffer.copy_(value)


@contextmanager
def restoring_tensors(model: torch.nn.Module) -> Iterator[None]:
    """Undo assignments of buffers, of parameters, and of tensors that are attributes or lie in a dict that is one."""
    owners: list[dict[Any, Any]] = []
    for module in model.modules():
        owners += [module.__dict__, *(held for held in module.__dict__.values() if isinstance(held, dict))]
    before = [(owner, dict(owner)) for owner in owners]
    try:
        yield
    finally:
        for owner, held in before:
            for name in {**held, **owner}:
                _restore(owner, name, held.get(name, _ABSENT))


def _restore(owner: dict[Any, Any], name: Any, before: Any) -> None:
    now = owner.get(name, _ABSENT)
    if now is before or not (isinstance(now, torch.Tensor) or isinstance(before, torch.Tensor)):
        return
    if before is _ABSENT:
        del owner[name]
    else:
        owner[name] = before
