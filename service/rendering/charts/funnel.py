"""The funnel of a Run: the Candidates that reached each stage, and the reasons why others stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.views.rows import ArmView, Tally
from evaluator.types import Stage, Verdict

_GATES = (
    ("proposed", "Answered proposals"),
    ("candidates", "Candidates created"),
    ("built", "Screened and built"),
    ("right", "Correct on every check"),
    ("timed", "Timed, and correct after it"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One level: the Candidates that got here, as a share of the first, and the reasons of those that stopped here."""

    name: str
    number: int
    share: float
    lost: tuple[tuple[str, int], ...]


def funnel(arms: Sequence[ArmView], tallies: Sequence[Tally], confirms: tuple[int, int], *, ended: bool) -> list[Gate]:
    """Return the levels of a Run's judgements, then those of its confirmations."""
    judgements = [tally for tally in tallies if tally.kind == "judge"]
    settled, made = sum(arm.settled for arm in arms), sum(arm.candidates for arm in arms)
    judged = sum(tally.number for tally in judgements)
    by_gate = [
        _lost(judgements, Stage.SCREEN, Stage.BUILD),
        _lost(judgements, Stage.CORRECTNESS),
        _lost(judgements, Stage.TIMING, Stage.INTEGRITY, Stage.PROFILE, Stage.CONFIRM),
    ]
    waiting = max(0, made - judged)
    built = judged - _sum(by_gate[0])
    right = built - _sum(by_gate[1])
    timed = right - _sum(by_gate[2])
    counts = (settled, made, built, right, timed)
    answered = (("no candidate, or a duplicate", settled - made),) if settled > made else ()
    unjudged = ((f"{'not judged' if ended else 'in progress'}, or a duplicate program", waiting),) if waiting else ()
    losses = (answered, (*by_gate[0], *unjudged), by_gate[1], by_gate[2], ())
    top = max(settled, 1)
    gates = [
        Gate(name=label, number=number, share=number / top, lost=lost)
        for (_, label), number, lost in zip(_GATES, counts, losses, strict=True)
    ]
    tried, promoted = confirms
    refused = (("not confirmed", tried - promoted),) if tried > promoted else ()
    gates.append(Gate(name="Sent to confirmation", number=tried, share=tried / top, lost=refused))
    gates.append(Gate(name="Became champion", number=promoted, share=promoted / top, lost=()))
    return gates


def _lost(judgements: Sequence[Tally], *stages: Stage) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for tally in judgements:
        if tally.stage in stages and tally.verdict is not Verdict.PASSED:
            word = tally.verdict.value.replace("_", " ").lower()
            counts[word] = counts.get(word, 0) + tally.number
    return tuple(sorted(counts.items(), key=lambda item: -item[1]))


def _sum(lost: Sequence[tuple[str, int]]) -> int:
    return sum(number for _, number in lost)
