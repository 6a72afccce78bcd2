"""Compare buffers that forward changes: after equal calls they hold the same values as the reference's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit, rule_for
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.subject import Subject
from evaluator.types import Stage, Verdict

CALLS = 3
_SLACK = 10.0  # after CALLS calls a buffer may have an error of this many times the rule's floors
_SUMMED = 1024  # terms: beyond, the error of a mean of both signs grows with the root of their number


def compare(
    subject: Subject,
    wanted: Mapping[str, torch.Tensor],
    names: Mapping[str, str],
    calls: Sequence[Sequence[torch.Tensor]],
    stage: Stage,
    where: str,
) -> None:
    """Compare a child's buffers with the reference's after the same `calls`. `names` maps the reference's names to the
    child's. Raises Rejection, ChildFault, LayoutError."""
    own = {b.name: b.claim for b in subject.describe_state().buffers}
    most = max((tensor.numel() for tensor in calls[0]), default=0)
    for name, value in wanted.items():
        claim = own.get(names.get(name, ""))
        spec = None if claim is None else TensorSpec.from_json({**claim, "offset": 0})
        if claim is None or spec is None or (spec.shape, spec.torch_dtype) != (tuple(value.shape), value.dtype):
            reason = f"forward changes the buffer {name}: ModelNew has no buffer of that name, shape and dtype"
            raise Rejection(Verdict.INCORRECT_VALUES, stage, reason, check="buffer", buffer=name)
        (actual,) = subject.backend.fetch(subject.child, [claim])
        target = Target(value if not value.is_floating_point() else value.double(), None)
        rule = rule_for(value.dtype)
        terms = most / max(1, value.numel())  # an element may be a sum of so many
        slack = _SLACK * max(1.0, len(calls) / CALLS) * max(1.0, math.sqrt(terms / _SUMMED))
        found = target.compare(actual, Limit(slack * rule.norm_floor, slack * rule.element_floor))
        if found is not None:
            reason = f"the buffer {name} is wrong after {len(calls)} calls on {where}: {found.reason}"
            raise Rejection(Verdict.INCORRECT_VALUES, stage, reason, **{**found.detail, "check": "buffer"})


def changed_parameters(
    subject: Subject, wanted: Mapping[str, torch.Tensor], names: Mapping[str, str], dtypes: Mapping[str, str]
) -> list[str]:
    """Return the parameters that a child no longer holds bit by bit and in their first `dtypes` (by the child's names),
    or not at all. Raises ChildFault, LayoutError."""
    own = {p.name: p.claim for p in subject.describe_state().parameters if p.claim.get("dtype") == dtypes.get(p.name)}
    known = [name for name in wanted if names.get(name) in own]
    gone = [name for name in wanted if name in names and name not in known]
    found = subject.backend.fetch(subject.child, [own[names[name]] for name in known])
    pairs = zip(known, found, strict=True)
    return gone + [n for n, now in pairs if now.shape != wanted[n].shape or not values.same_bits(now, wanted[n])]


def held_buffers(subject: Subject, names: Mapping[str, str], dtypes: Mapping[str, str]) -> dict[str, torch.Tensor]:
    """Return the buffers that a child holds in their first `dtypes`, by the reference's `names` for them. Raises
    ChildFault, LayoutError."""
    own = {b.name: b.claim for b in subject.describe_state().buffers if b.claim.get("dtype") == dtypes.get(b.name)}
    known = [name for name in names if names[name] in own]
    return dict(zip(known, subject.backend.fetch(subject.child, [own[names[n]] for n in known]), strict=True))
