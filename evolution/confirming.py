"""What is worth confirming. It costs many judgements, so it waits for a reason; before the end, all is tried."""

from __future__ import annotations

from evolution.spending import may_confirm
from evolution.state import Elite, SearchState

MARGIN = 1.02
FINAL_MARGIN = 1.0
SETTLED_AFTER = 24
"""A new best is confirmed once this many later Candidates did not beat it, or at once where it reaches the target."""
MAX_REFUSED = 4
"""Once so many that seemed as fast were refused, only what is clearly faster than they is tried."""


def elite_to_confirm(state: SearchState, *, final: bool) -> Elite | None:
    """The elite to confirm now, or None. One at a time: each confirmation is against the Champion that stands.

    During the search: a lower bound above the fastest Baseline, MARGIN above the Champion, and no newer best at hand.
    `final` (nothing more will be proposed, or time is nearly up): the fastest that was never tried, if it is faster
    than what stands.
    """
    if state.open_confirms or not may_confirm(state):
        return None
    bar = max(1.0, state.champion.speedup if state.champion is not None else 1.0)
    standing = state.champion.hash if state.champion is not None else None
    fresh = [e for e in state.elites if not (e.confirms or e.confirmed) and e.hash != standing]
    if not fresh:
        return None
    best = max(fresh, key=lambda elite: (elite.speedup, elite.candidate_id))
    refused = sum(1 for e in state.elites if e.confirms and not e.confirmed and e.speedup * MARGIN >= best.speedup)
    if refused >= MAX_REFUSED:
        return None
    if final:
        return best if best.speedup > bar * FINAL_MARGIN else None
    target = state.config.target_speedup
    ripe = state.since_best >= SETTLED_AFTER or (target is not None and best.speedup >= target)
    return best if ripe and best.low > 1.0 and best.speedup > bar * MARGIN else None
