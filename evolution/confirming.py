"""Choose the Candidate to confirm. A confirmation costs many judgements, so it needs a reason until the Run's end."""

from __future__ import annotations

from evolution.spending import may_confirm
from evolution.state import Elite, SearchState

MARGIN = 1.02
FINAL_MARGIN = 1.0
SETTLED_AFTER = 24
"""A new best is confirmed once this many later Candidates did not beat it, or at once if it reaches the target."""
MAX_REFUSED = 4
"""After this many refused confirmations of about the same speed, only a clearly faster Candidate is tried."""


def elite_to_confirm(state: SearchState, *, final: bool) -> Elite | None:
    """Return the elite to confirm now, or None. One at a time: each confirmation is against the current Champion.

    During the search its lower bound must be above the fastest Baseline, its speedup above the Champion's by MARGIN,
    and no better one may have appeared lately. `final` means that nothing more will be proposed, or that time is nearly
    up: then return the fastest one without a confirmation, if it is faster than the Champion and the Baseline.
    """
    if state.open_confirms or not may_confirm(state):
        return None
    bar = max(1.0, state.champion.speedup if state.champion is not None else 1.0)
    standing = state.champion.hash if state.champion is not None else None
    unknown = [e for e in state.elites if not (e.confirms or e.confirmed) and e.hash != standing]
    fresh = [e for e in unknown if final or not e.outdated]
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
