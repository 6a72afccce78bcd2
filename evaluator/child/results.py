"""Inspect and copy the results of a call: its tensors, its structure, and results of the same form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.child.reference.float64 import Twins

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_NAMES = frozenset(dir(torch.Tensor))


def tensor_leaves(value: Any) -> list[torch.Tensor]:
    """Return the tensors of one call's result, in the order of their claims."""
    if isinstance(value, torch.Tensor):
        return [value]
    kind, items = container_items(value)
    return [tensor for item in items for tensor in tensor_leaves(item[1] if kind == "dict" else item)]


def container_items(value: Any) -> tuple[str, list[Any]]:
    """Return the kind and the items of a container: a list, a tuple (also a named one), or a dict.

    The pairs of a dict come in the order of their keys. Return "" for anything else. No method that a class may
    override is called.
    """
    kind = type(value)
    if issubclass(kind, tuple):
        return "tuple", list(tuple.__iter__(value))
    if issubclass(kind, list):
        return "list", list(list.__iter__(value))
    if issubclass(kind, dict):
        return "dict", sorted(dict.items(value), key=lambda pair: str(pair[0]))
    return "", []


def replace_by_twins(value: Any, twins: Twins) -> Any:
    """Return a lifted call's result, with the float64 twin of each of the call's own tensors changed in place."""
    return _changed(value, lambda tensor: twins[id(tensor)][1] if id(tensor) in twins else tensor)


def detach_outputs(value: Any) -> Any:
    """Return a call's result with plain tensors replaced by tensors that share their memory."""

    def detach(tensor: torch.Tensor) -> torch.Tensor:
        plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and not shadowed_name(tensor)
        return tensor.detach() if plain else tensor

    return _changed(value, detach)


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    kind, items = container_items(value)
    if kind == "dict":
        return {key: _changed(item, change) for key, item in items}
    made = [_changed(item, change) for item in items]
    return tuple(made) if kind == "tuple" else made if kind else value


def unusual_type(tensor: torch.Tensor) -> str:
    """Say how a tensor may behave unlike others: its subclass, or its `shadowed_name`; "" for an ordinary tensor."""
    if type(tensor) not in _PLAIN:
        return type(tensor).__name__[:80] or "subclass without a name"
    name = shadowed_name(tensor)
    return f"torch.Tensor with a {name[:40]} of its own" if name else ""


def shadowed_name(tensor: torch.Tensor) -> str:
    """Return an attribute set on a plain tensor that hides one of torch.Tensor's own, "" if there is none.

    Its `data_ptr` may be another tensor's. Names that torch.Tensor lacks are allowed. A name that is no str may equal
    any.
    """
    for name in dict.__iter__(object.__getattribute__(tensor, "__dict__")):
        if type(name) is not str or name in _NAMES:
            return name if type(name) is str else "nameless attribute"
    return ""


def lazy_form(tensor: torch.Tensor) -> str:
    """Return the reason why memory does not hold the tensor's values one by one, "" if it does."""
    if tensor.is_nested:  # it has no shape, and claims to be strided
        return "nested"
    return "lazy conjugate" if tensor.is_conj() else "lazy negative" if tensor.is_neg() else ""


class Null(torch.nn.Module):
    """Do nothing, as fast as a module can: its time is the overhead of a call and of a round."""

    def __init__(self, outputs: Any) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, *inputs: Any) -> Any:
        return self._outputs


def empty_outputs(reply: Any, device: torch.device) -> Any:
    """Return empty tensors of the form that a result claims, in its structure."""
    ((kind, body),) = reply.items()
    if kind == "tensor":
        spec = TensorSpec.from_json(body)
        return torch.empty_strided(spec.shape, spec.stride, dtype=spec.torch_dtype, device=device)
    if kind in ("list", "tuple"):
        items = [empty_outputs(item, device) for item in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: empty_outputs(item, device) for key, item in body}
    return body


def base_address(tensor: torch.Tensor) -> int:
    """Return the address where a tensor's storage begins."""
    return tensor.untyped_storage().data_ptr()
