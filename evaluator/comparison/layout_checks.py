"""Check a call's result apart from its values: structure, type, shape, dtype, layout, and ownership of its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any

from evaluator.child.protocol.layout import TensorSpec
from evaluator.comparison.claims import lazy_reason, leaves, structure, tensor_claims
from evaluator.comparison.expected import Expected
from evaluator.errors import Rejection
from evaluator.types import Stage, Verdict

STAGE = Stage.CORRECTNESS
_MOST_SEARCHED_PLACES = 1 << 28  # more would take long


def check_reply(expected: Expected, reply: Any) -> None:
    """Check structure, type, device, layout, shape and dtype of one call's claims, before anything is read. Raise
    Rejection."""
    want, got = expected.structure, structure(reply)
    if want != got:
        reason = f"forward returns {got[:200]}; the reference returns {want[:200]} (T: a tensor)"
        raise Rejection(
            Verdict.INCORRECT_SHAPE, STAGE, reason, check="structure", expected=want[:500], actual=got[:500]
        )
    pairs = zip(leaves(expected.reply), leaves(reply), strict=True)
    for (path, mine), (_, theirs) in pairs:
        if "tensor" in mine:
            _check_tensor(path, mine["tensor"], theirs["tensor"])


def _check_tensor(path: str, want: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    if "type" in got:
        kind, where, layout = (str(got.get(key))[:80] for key in ("type", "device", "layout"))
        if kind != "torch.Tensor":
            raise Rejection(
                Verdict.REWARD_HACK, STAGE, f"{path} is a {kind}, not a plain torch.Tensor", check="plain_tensor"
            )
        if why := lazy_reason(got):
            raise Rejection(Verdict.INCORRECT_SHAPE, STAGE, f"{path} is {why}", check="layout")
        reason = f"{path} is on {where} with layout {layout}"
        raise Rejection(Verdict.INCORRECT_SHAPE, STAGE, reason, check="device", actual=where)
    spec, asked = TensorSpec.from_json({**got, "offset": 0}), TensorSpec.from_json({**want, "offset": 0})
    if spec.shape != asked.shape:
        reason = f"{path} has shape {list(spec.shape)}; the reference's has {list(asked.shape)}"
        evidence = {"check": "shape", "expected": list(asked.shape), "actual": list(spec.shape)}
        raise Rejection(Verdict.INCORRECT_SHAPE, STAGE, reason, **evidence)
    if spec.dtype != asked.dtype:
        reason = f"{path} is {spec.dtype}; the reference's is {asked.dtype}"
        evidence = {"check": "dtype", "expected": asked.dtype, "actual": spec.dtype}
        raise Rejection(Verdict.INCORRECT_DTYPE, STAGE, reason, **evidence)
    if spec.is_sparse and not asked.is_sparse:
        reason = f"{path} lies scattered over {spec.span_bytes} bytes of memory: return a dense tensor"
        raise Rejection(Verdict.INCORRECT_SHAPE, STAGE, reason, check="layout", stride=list(spec.stride))
    if _overlaps_itself(spec) and not _overlaps_itself(asked):
        reason = f"{path} overlaps itself: several of its elements share one place in memory (return a contiguous copy)"
        raise Rejection(Verdict.INCORRECT_SHAPE, STAGE, reason, check="layout", stride=list(spec.stride))


def check_no_alias(expected: Expected, reply: Any, where: str, **evidence: Any) -> None:
    """Raise Rejection where an output shares memory with an input, unless the reference's is, too."""
    for mine, theirs in zip(tensor_claims(expected.reply), tensor_claims(reply), strict=True):
        if theirs.get("alias") and not mine.get("alias"):
            reason = f"an output shares memory with an input, on {where}: every call must return fresh tensors"
            raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="alias", **evidence)


def _overlaps_itself(spec: TensorSpec) -> bool:
    """Return whether two elements lie in the same place, so that a write to one changes the other."""
    return _overlapping(spec.shape, spec.stride)


@lru_cache(maxsize=4096)
def _overlapping(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    if 0 in shape:
        return False
    axes = sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1)
    extent, nested = 1, True
    for step, size in axes:
        nested = nested and step >= extent
        extent += (size - 1) * step
    if nested:
        return False
    elements = math.prod(shape)
    if axes[0][0] == 0 or elements > extent:
        return True
    if extent > _MOST_SEARCHED_PLACES:
        return False  # unknown, but no usual view has gaps that another of its axes fills
    places = 1  # one bit for each place of an element
    for step, size in axes:
        done = 1
        while done < size:
            more = min(done, size - done)
            places |= places << more * step
            done += more
    return places.bit_count() < elements


def check_no_reuse(replies: Sequence[Any], views: Sequence[bool] = ()) -> None:
    """Raise Rejection where outputs of different calls share memory: a later call would overwrite the earlier output.

    `views` marks outputs that view inputs in shared memory: nothing can be told of those.
    """
    places = []
    for call, reply in enumerate(replies):
        claims = tensor_claims(reply)
        for claim in (c for c, view in zip_longest(claims, views, fillvalue=False) if isinstance(c, dict) and not view):
            spec = TensorSpec.from_json(claim)
            start = claim.get("address", spec.offset)
            if spec.span_bytes and type(start) is int:
                places.append((str(claim.get("handle", ""))[:200], start, start + spec.span_bytes, call))
    places.sort()
    for (handle, _, end, call), (other, start, _, later) in pairwise(places):
        if handle == other and start < end and call != later:
            raise Rejection(
                Verdict.INCORRECT_VALUES,
                STAGE,
                "two calls returned the same memory: every call must return fresh tensors",
                check="reused_output",
            )
