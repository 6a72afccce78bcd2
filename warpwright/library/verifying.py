"""Compare a problem file with the original, here, before it is sent anywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from warpwright.library.errors import NotPortable
from warpwright.library.literals import torch
from warpwright.library.problems import RECIPE, Call, Portable, load_text
from warpwright.library.weights import adopt


def verify(problem: Portable, target: Callable[..., Any]) -> Portable:
    """Return the problem with MUTATES as seen. Raises NotPortable where it answers otherwise than the original."""
    library = torch()
    call = problem.call
    with library.no_grad(), library.random.fork_rng(devices=[]), _evaluating(target):
        ours, theirs = _copied(call), _copied(call)
        with _restoring(target):
            expected = _own(theirs.made(target))
        try:
            made = load_text(problem.source, f"warpwright_problem_{problem.key}")
            model = made.Model().eval()
            if isinstance(target, library.nn.Module):
                adopt(model, target)
            drawn = made.get_inputs()
            with _restoring(target):
                actual = _own(model(*ours.tensors.values()))
            library.testing.assert_close(actual, expected, equal_nan=True)
            for own, given in zip(drawn, call.tensors.values(), strict=True):
                assert (own.shape, own.stride(), own.dtype) == (given.shape, given.stride(), given.dtype)
        except NotPortable:
            raise
        except Exception as error:  # any error of the user's own code, run from the file
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            raise NotPortable(f"{problem.name!r} cannot be taken out of its surroundings ({reason})") from error
    changed = [n for n, (name, t) in enumerate(call.tensors.items()) if not _same(t, theirs.tensors[name])]
    if changed:
        source = problem.source.replace(RECIPE, f"MUTATES = {changed}\n\n\n{RECIPE}", 1)
        return replace(problem, source=source)
    return problem


def _copied(call: Call) -> Call:
    tensors: Mapping[str, Any] = {name: tensor.detach().clone() for name, tensor in call.tensors.items()}
    return replace(call, tensors=tensors)


def _own(outputs: Any) -> Any:
    """Return outputs that share no memory with a buffer, which is given its values again."""
    library = torch()
    return library.utils._pytree.tree_map_only(library.Tensor, lambda one: one.clone(), outputs)


def _same(one: Any, other: Any) -> bool:
    """Return True if all bytes are equal: not every dtype can be compared, and NaN is no change."""
    return bool(torch().equal(*(_bytes(tensor) for tensor in (one, other))))


def _bytes(tensor: Any) -> Any:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch().uint8)


@contextlib.contextmanager
def _restoring(target: Any) -> Iterator[None]:
    """Give a module its buffers again after a block, with their values: trying it must not change what it counts."""
    parts = list(target.modules()) if isinstance(target, torch().nn.Module) else []
    kept = [(part, dict(part._buffers)) for part in parts]
    values = {id(one): (one, one.clone()) for _, own in kept for one in own.values() if one is not None}
    try:
        yield
    finally:
        for part, own in kept:
            part._buffers.clear()
            part._buffers.update(own)
        for buffer, value in values.values():
            buffer.copy_(value)


@contextlib.contextmanager
def _evaluating(target: Any) -> Iterator[None]:
    """Put every part of a module into evaluation mode for a block: kernels are made for that."""
    modes = [(one, one.training) for one in target.modules()] if isinstance(target, torch().nn.Module) else []
    try:
        for one, _ in modes:
            one.training = False
        yield
    finally:
        for one, mode in modes:
            one.training = mode
