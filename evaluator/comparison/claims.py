"""What a child says that a call returned: its structure, and the tensors in it. Claims only; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluator.child.protocol.layout import LayoutError, TensorSpec

_MAX_LEAVES, _MAX_DEPTH = 256, 32


def replies_of(reply: Mapping[str, Any], calls: int) -> Sequence[Any]:
    """One entry per call, each of a form that the functions below can read. Raises LayoutError for anything else.

    A number stands for a tensor at that address, laid out like the one before.
    """
    outputs = reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != calls:
        raise LayoutError(f"the child does not report {calls} results")
    found: list[Any] = []
    for item in outputs:
        if type(item) is int and found and "address" in found[-1].get("tensor", {}):
            found.append({"tensor": {**found[-1]["tensor"], "address": item}})
        else:
            _check(item, 0)
            found.append(item)
    return found


def check_tensor(claim: Mapping[str, Any]) -> None:
    """Raises LayoutError for a layout that describes nothing; what is no plain tensor has no strides."""
    shape = claim.get("shape")
    flat = [0] * len(shape) if isinstance(shape, list) else None
    TensorSpec.from_json({**claim, "offset": claim.get("offset", 0), "stride": claim.get("stride", flat)})


def _check(reply: Any, depth: int) -> None:
    """Nothing but lists of pairs, lists, tensors' layouts and plain values. Raises LayoutError."""
    if not isinstance(reply, dict) or len(reply) != 1 or depth > _MAX_DEPTH:
        raise LayoutError("a result that nobody wrote")
    ((kind, body),) = reply.items()
    if kind == "tensor":
        if not isinstance(body, dict):
            raise LayoutError("a tensor that nobody wrote")
        check_tensor(body)
    elif kind in ("list", "tuple") and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for item in body:
            _check(item, depth + 1)
    elif kind == "dict" and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                raise LayoutError("a dict that nobody wrote")
            _check(pair[1], depth + 1)
    elif kind not in ("value", "other"):
        raise LayoutError("a result that nobody wrote")


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


def tensor_claims(reply: Any) -> list[dict[str, Any]]:
    """The claims about tensors in a result, in order."""
    found: list[dict[str, Any]] = []
    for _, leaf in leaves(reply):
        if "tensor" in leaf:
            if not isinstance(leaf["tensor"], dict):
                raise LayoutError("a tensor that nobody wrote")
            found.append(leaf["tensor"])
    return found


def lazy_reason(claim: Mapping[str, Any]) -> str:
    """What is wrong with a tensor whose memory does not hold its values, and what to do; "" with any other."""
    layout = str(claim.get("layout", ""))[:80]
    advice = "whose memory holds other values: return its resolve_conj().resolve_neg()"
    return f"a {layout}, {advice}" if layout.startswith("lazy") else ""


def structure(reply: Any) -> str:
    """The shape of a result as text: lists and tuples alike, dicts by their keys, tensors as "T"."""
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
