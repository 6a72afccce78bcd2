"""Decide whether a confirmed Candidate is promoted, and say in words what stopped it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from evaluator.timing import stats
from evaluator.timing.protocol import STANDARD, Promotion
from evaluator.types import Interval, Workload

Logs = Sequence[tuple[Workload, Sequence[float]]]
"""Log ratios by Workload, one for each repetition."""
_HELD_OUT = "a held-out workload"
_CHECKED = {  # what a check looks at, in words
    "own_loops": "whether our loop makes its calls",
    "single_calls": "whether it does its work in each call",
    "libraries": "whether it calls libraries, which the problem forbids,",
    "repeated_integers": "whether it is as fast on integers that it has not seen",
    "plain_loop": "its time in a plain loop",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision, the numbers behind it, and `why_not`: a line for each rule that forbids the promotion.

    `gain` is the mean ratio; `bound` its one-sided lower bound, which must exceed `threshold`.
    """

    promote: bool
    gain: float
    bound: float
    threshold: float
    aa_spread: float
    harness_share: float
    worse_workloads: tuple[str, ...]
    why_not: tuple[str, ...]

    def refused(self, why: str) -> Decision:
        """Return this decision without a promotion, for one more reason."""
        return replace(self, promote=False, why_not=(*self.why_not, why))

    def evidence(self) -> dict[str, object]:
        """Return it as plain values, without the decision itself."""
        found = {key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(self).items()}
        del found["promote"]
        return found


def decide(
    against: Logs,
    again: Logs,
    on_held_out: Logs = (),
    resolutions: Sequence[float] = (),
    promotion: Promotion = STANDARD.promotion,
    *,
    name: str = "the fastest baseline",
) -> Decision:
    """Decide about promotion. `name` says what the Candidate was compared with.

    The bound must exceed 1 + the largest of three: the least gain, the spread of equal kernels on this device, and the
    gain that a child could get from a faster harness (`resolutions` per Workload, weighted as the ratios are). No
    Workload may be slower, or so noisy that nobody knows. A held-out one is reported without its name and ratio.
    """
    logs = _headline(against)
    bound = stats.lower_bound(logs, promotion.confidence)
    spread = _spread(_headline(again))
    gains = [(workload, [math.log1p(share)]) for (workload, _), share in zip(against, resolutions, strict=False)]
    resolution = math.expm1(_headline(gains)[0]) if gains else 0.0
    threshold = 1 + max(promotion.least_gain, spread, resolution)
    ratios = [(workload, *stats.ratio_interval(list(some))) for workload, some in (*against, *on_held_out)]
    worse = [(w, value) for w, value, interval in ratios if interval.high < promotion.worst_workload]
    gain = math.exp(statistics.fmean(logs))
    reasons = []
    unclear = [
        (w, interval)
        for w, value, interval in ratios
        if value < promotion.worst_workload <= interval.high and interval.low < promotion.unclear_workload
    ]
    if bound <= threshold:
        reasons.append(
            f"{gain:.3f}x {name} was measured, but only {bound:.3f}x is sure "
            f"({100 * promotion.confidence:.1f} %); more than {threshold:.3f}x is asked"
            f"{_asked(promotion, spread, resolution)}"
        )
    reasons += _slower(worse, promotion.worst_workload)
    reasons += _unclear(unclear)
    return Decision(
        promote=not reasons,
        gain=gain,
        bound=bound,
        threshold=threshold,
        aa_spread=spread,
        harness_share=resolution,
        worse_workloads=tuple(dict.fromkeys(_HELD_OUT if w.held_out else w.name for w, _ in worse)),
        why_not=tuple(reasons),
    )


def _asked(promotion: Promotion, spread: float, resolution: float) -> str:
    """Say why the threshold is above the least gain; "" where it is not."""
    if max(spread, resolution) <= promotion.least_gain:
        return ""
    if spread >= resolution:
        return f", because two processes with this kernel differed by {100 * spread:.1f} %"
    return f", because a faster harness could save {100 * resolution:.1f} % of its time"


def _slower(worse: Sequence[tuple[Workload, float]], least: float) -> list[str]:
    shown = [f"{workload.name} at {value:.3f}x" for workload, value in worse if not workload.held_out]
    found = []
    if shown:
        found.append(f"it is slower on {', '.join(shown)}; no workload may be below {least:g}x")
    if len(shown) < len(worse):
        found.append(f"it is slower on {_HELD_OUT}")
    return found


def _unclear(unclear: Sequence[tuple[Workload, Interval]]) -> list[str]:
    found = [
        f"it could not be measured whether it is slower on {workload.name}: {interval.low:.2f}x to {interval.high:.2f}x"
        for workload, interval in unclear
        if not workload.held_out
    ]
    if len(found) < len(unclear):
        found.append(f"it could not be measured whether it is slower on {_HELD_OUT}: its times vary too much")
    return found


def unchecked_in_words(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say which checks could not look, and why, on which Workloads."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for workload, reasons in found.items():
        for check, why in reasons.items():
            by_reason.setdefault((check, why), []).append(workload)
    return [
        f"{_CHECKED.get(check, check)} could not be checked on {', '.join(names)}: {why}"
        for (check, why), names in by_reason.items()
    ]


def _headline(parts: Logs) -> list[float]:
    """Return the weighted mean of log ratios over Workloads, per repetition."""
    total = sum(workload.weight for workload, _ in parts)
    repetitions = min(len(logs) for _, logs in parts)
    return [sum(w.weight * logs[i] for w, logs in parts) / total for i in range(repetitions)]


def _spread(logs: Sequence[float]) -> float:
    """Return the apparent difference of equal kernels: the larger of their mean difference and twice its error."""
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return math.expm1(max(abs(statistics.fmean(logs)), 2 * error))
