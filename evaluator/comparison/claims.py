"""A child's claims about a call's result: its structure, and its tensors. Nothing is read from memory here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluator.child.protocol.layout import JUDGED_DTYPES, LayoutError, TensorSpec

_MAX_LEAVES, _MAX_DEPTH = 256, 32


def replies_of(reply: Mapping[str, Any], calls: int) -> Sequence[Any]:
    """Return one entry per call, each in a form that the functions below can read. Raise LayoutError for anything else.

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
    """Raise LayoutError for a layout that describes nothing. Tensors of other kinds than plain ones have no strides."""
    shape = claim.get("shape")
    flat = [0] * len(shape) if isinstance(shape, list) else None
    TensorSpec.from_json({**claim, "offset": claim.get("offset", 0), "stride": claim.get("stride", flat)})


def _check(reply: Any, depth: int) -> None:
    """Accept only lists of pairs, lists, tensors' layouts and plain values. Raise LayoutError."""
    if not isinstance(reply, dict) or len(reply) != 1 or depth > _MAX_DEPTH:
        raise LayoutError("a result of unknown form")
    ((kind, body),) = reply.items()
    if kind == "tensor":
        if not isinstance(body, dict):
            raise LayoutError("a tensor of unknown form")
        check_tensor(body)
    elif kind in ("list", "tuple") and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for item in body:
            _check(item, depth + 1)
    elif kind == "dict" and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                raise LayoutError("a dict of unknown form")
            _check(pair[1], depth + 1)
    elif kind not in ("value", "other"):
        raise LayoutError("a result of unknown form")


def leaves(reply: Any, path: str = "output") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every leaf with its path: {"tensor": claim}, {"value": ...} or {"other": type name}. Raise LayoutError."""
    if not isinstance(reply, dict) or len(reply) != 1:
        raise LayoutError("a result of unknown form")
    ((kind, body),) = reply.items()
    if kind in ("list", "tuple") and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for index, item in enumerate(body):
            yield from leaves(item, f"{path}[{index}]")
    elif kind == "dict" and isinstance(body, list) and len(body) <= _MAX_LEAVES:
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                raise LayoutError("a dict of unknown form")
            yield from leaves(pair[1], f"{path}[{str(pair[0])[:80]!r}]")
    elif kind in ("tensor", "value", "other"):
        yield path, reply
    else:
        raise LayoutError("a result of unknown form")


def tensor_claims(reply: Any) -> list[dict[str, Any]]:
    """Return the claims about tensors in a result, in order."""
    found: list[dict[str, Any]] = []
    for _, leaf in leaves(reply):
        if "tensor" in leaf:
            if not isinstance(leaf["tensor"], dict):
                raise LayoutError("a tensor of unknown form")
            found.append(leaf["tensor"])
    return found


def lazy_reason(claim: Mapping[str, Any]) -> str:
    """Say that a tensor's layout is lazy, with advice, since its memory does not hold its values; "" for any other
    tensor."""
    layout = str(claim.get("layout", ""))[:80]
    advice = "with other values in memory: return its resolve_conj().resolve_neg()"
    return f"a {layout}, {advice}" if layout.startswith("lazy") else ""


def unjudged_reason(claim: Mapping[str, Any]) -> str:
    """Say why a reference's tensor cannot be judged, with its layout or dtype; "" for one that can be."""
    kind, layout, dtype = (str(claim.get(key, ""))[:80] for key in ("type", "layout", "dtype"))
    if kind and layout != "torch.strided":
        return f"is a {layout} tensor: only dense ones are judged"
    if kind:
        return f"is a {kind} on {str(claim.get('device'))[:40]}: only plain tensors on the judge's device are judged"
    return "" if dtype in JUDGED_DTYPES else f"is of dtype {dtype}, which is not judged: convert it"


def unjudged_leaf(reply: Any) -> str:
    """Say which part of a reference's result cannot be compared, and what to do; "" where every part can be."""
    for path, leaf in leaves(reply):
        if "other" in leaf:
            return (
                f"forward returns a {str(leaf['other'])[:100]} ({path}), which cannot be compared: return tensors,"
                f" plain numbers or strings, or tuples, lists and dicts of these (at most {_MAX_LEAVES} items in each)"
            )
    return ""


def structure(reply: Any) -> str:
    """Return the shape of a result as text: lists and tuples alike, dicts by their keys, tensors as "T"."""
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
