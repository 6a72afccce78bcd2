"""What a child says that a call returned: its structure, and the tensors in it. Claims only; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluator.child.spec import LayoutError

_MAX_LEAVES = 256


def replies_of(reply: Mapping[str, Any], calls: int) -> Sequence[Any]:
    """One entry per call. Raises LayoutError when the child says anything else."""
    outputs = reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != calls:
        raise LayoutError(f"the child does not report {calls} results")
    return outputs


def leaves(reply: Any, path: str = "output") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every leaf with its path: {"tensor": claim}, {"value": ...} or {"other": type name}. Raises LayoutError."""
    if not isinstance(reply, dict) or len(reply) != 1:
        raise LayoutError("a result that nobody wrote")
    ((kind, body),) = reply.items()
    if kind in ("list", "tuple") and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for index, item in enumerate(body):
            yield from leaves(item, f"{path}[{index}]")
    elif kind == "dict" and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                raise LayoutError("a dict that nobody wrote")
            yield from leaves(pair[1], f"{path}[{str(pair[0])[:80]!r}]")
    elif kind in ("tensor", "value", "other"):
        yield path, reply
    else:
        raise LayoutError("a result that nobody wrote")


def tensor_claims(reply: Any) -> list[Mapping[str, Any]]:
    """The claims about tensors in a result, in order."""
    found: list[Mapping[str, Any]] = []
    for _, leaf in leaves(reply):
        if "tensor" in leaf:
            if not isinstance(leaf["tensor"], dict):
                raise LayoutError("a tensor that nobody wrote")
            found.append(leaf["tensor"])
    return found


def structure(reply: Any) -> str:
    """The shape of a result as text: lists and tuples alike, tensors as "T"."""
    if not isinstance(reply, dict) or len(reply) != 1:
        return "?"
    ((kind, body),) = reply.items()
    if kind in ("list", "tuple") and isinstance(body, list):
        return "(" + ", ".join(structure(item) for item in body) + ")"
    if kind == "dict" and isinstance(body, list):
        return "{" + ", ".join(f"{pair[0]!s}: {structure(pair[1])}" for pair in body) + "}"
    if kind == "tensor":
        return "T"
    return f"value {body!r}" if kind == "value" else f"a {body}"
