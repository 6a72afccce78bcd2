"""What a call returns: its tensors, its structure, and results that are like another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.child.reference.float64 import Twins

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_NAMES = frozenset(dir(torch.Tensor))


def tensor_leaves(value: Any) -> list[torch.Tensor]:
    """The tensors of one call's result, in the order in which they are claimed."""
    if isinstance(value, torch.Tensor):
        return [value]
    kind, items = container_items(value)
    return [tensor for item in items for tensor in tensor_leaves(item[1] if kind == "dict" else item)]


def container_items(value: Any) -> tuple[str, list[Any]]:
    """What a result that holds others is, and these: a list, a tuple (a named one, too), or a dict, whose pairs come in
    the order of their keys. "" for anything else; nothing that a class may define is called."""
    kind = type(value)
    if issubclass(kind, tuple):
        return "tuple", list(tuple.__iter__(value))
    if issubclass(kind, list):
        return "list", list(list.__iter__(value))
    if issubclass(kind, dict):
        return "dict", sorted(dict.items(value), key=lambda pair: str(pair[0]))
    return "", []


def replace_by_twins(value: Any, twins: Twins) -> Any:
    """A lifted call's result; where that is one of the call's own tensors, changed in place, its twin."""
    return _changed(value, lambda tensor: twins[id(tensor)][1] if id(tensor) in twins else tensor)


def detach_outputs(value: Any) -> Any:
    """A call's result with tensors that share the memory of its plain ones, in place of those."""

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
    """An attribute, set on a plain tensor itself, that hides what every tensor has, "" where there is none: its
    `data_ptr` may be another tensor's. Names that tensors lack are anybody's to use; what is no str may equal any."""
    for name in dict.__iter__(object.__getattribute__(tensor, "__dict__")):
        if type(name) is not str or name in _NAMES:
            return name if type(name) is str else "nameless attribute"
    return ""


def lazy_form(tensor: torch.Tensor) -> str:
    """How memory does not hold the tensor's values one by one, "" where it does."""
    if tensor.is_nested:  # it has no shape to ask for, and says that it is strided
        return "nested"
    return "lazy conjugate" if tensor.is_conj() else "lazy negative" if tensor.is_neg() else ""


class Null(torch.nn.Module):
    """Does nothing, as fast as a module can: what it takes is the overhead of a call and of a round."""

    def __init__(self, outputs: Any) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, *inputs: Any) -> Any:
        return self._outputs


def empty_outputs(reply: Any, device: torch.device) -> Any:
    """Tensors like those that a result claims, in its structure."""
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
    """Where the memory begins that a tensor looks into."""
    return tensor.untyped_storage().data_ptr()
