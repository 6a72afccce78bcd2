"""Compare buffers that forward changes: after equal calls they hold the same values as the reference's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit, rule_for
from evaluator.devices.base import RoundPlan
from evaluator.errors import ChildFault, Rejection
from evaluator.inputs import values
from evaluator.subject import Subject
from evaluator.timing.contender import Contender
from evaluator.timing.rounds import Rounds
from evaluator.timing.runs import STAGE, Run
from evaluator.types import Stage, Verdict

CALLS = 3
_SLACK = 10.0  # after CALLS calls a buffer may have an error of this many times the rule's floors


def compare(
    subject: Subject, wanted: Mapping[str, torch.Tensor], names: Mapping[str, str], calls: int, stage: Stage, where: str
) -> None:
    """Compare a child's buffers with the reference's after the same `calls`. `names` maps the reference's names to the
    child's. Raises Rejection, ChildFault, LayoutError."""
    own = {b.name: b.claim for b in subject.describe_state().buffers}
    slack = _SLACK * max(1.0, calls / CALLS)
    for name, value in wanted.items():
        claim = own.get(names.get(name, ""))
        spec = None if claim is None else TensorSpec.from_json({**claim, "offset": 0})
        if claim is None or spec is None or (spec.shape, spec.torch_dtype) != (tuple(value.shape), value.dtype):
            reason = f"forward changes the buffer {name}: ModelNew has no buffer of that name, shape and dtype"
            raise Rejection(Verdict.INCORRECT_VALUES, stage, reason, check="buffer", buffer=name)
        (actual,) = subject.backend.fetch(subject.child, [claim])
        target = Target(value if not value.is_floating_point() else value.double(), None)
        rule = rule_for(value.dtype)
        found = target.compare(actual, Limit(slack * rule.norm_floor, slack * rule.element_floor))
        if found is not None:
            reason = f"the buffer {name} is wrong after {calls} calls on {where}: {found.reason}"
            raise Rejection(Verdict.INCORRECT_VALUES, stage, reason, **{**found.detail, "check": "buffer"})


def changed_parameters(subject: Subject, wanted: Mapping[str, torch.Tensor], names: Mapping[str, str]) -> list[str]:
    """Return the parameters that a child no longer holds bit by bit. Raises ChildFault, LayoutError."""
    own = {p.name: p.claim for p in subject.describe_state().parameters}
    known = [name for name in wanted if names.get(name) in own]
    found = subject.backend.fetch(subject.child, [own[names[name]] for name in known])
    pairs = zip(known, found, strict=True)
    return [n for n, now in pairs if now.shape != wanted[n].shape or not values.same_bits(now, wanted[n])]


def hold(rounds: Rounds, contenders: Sequence[Contender], plan: RoundPlan) -> None:
    """The buffers that one more round like those that were timed leaves, which itself is not: what is moved in a
    module's first calls alone was work that was left out since. Where outputs depend on buffers, those of timed rounds
    tell as much. Raises Rejection, ComparatorFailed."""
    if not rounds.moves_buffers:
        return
    once = replace(plan, replays=1, instances=1)
    for contender in (c for c in contenders if c.compared_in_full):
        rounds.run(contender, rounds.repeated(once.calls), once)  # prepares it for such rounds
        fresh = rounds.plain(once.calls)
        done = rounds.run(contender, fresh, once, read=once.calls)
        rounds.verifier.verify(Run(contender, fresh, done))
        try:
            calls = chain.derive(fresh.calls, done.outputs, fresh.link)
            wanted = rounds.oracle.changed_buffers(rounds.tree, calls)
            names = _names(rounds.oracle.buffers, contender.buffers)
            compare(contender.subject, wanted, names, once.calls, STAGE, rounds.verifier.shown)
        except (ChildFault, LayoutError) as fault:
            raise rounds.verifier.blame(contender, fault) from fault
        except Rejection as found:
            if rounds.workload.held_out:
                raise Rejection(
                    found.verdict, STAGE, "a buffer is wrong after a held-out workload", check="buffer"
                ) from found
            raise


def _names(reference: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The reference's names to those of a child that was given the same tensors."""
    known = {id(value): name for name, value in own.items()}
    return {name: known[id(value)] for name, value in reference.items() if id(value) in known}
