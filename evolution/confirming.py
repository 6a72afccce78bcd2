"""Choose the Candidate to confirm. A confirmation costs many judgements, so it needs a reason until the Run's end."""

from __future__ import annotations

from evolution.spending import MARGIN, bar, confirmation_fits, is_worth_confirming, may_confirm
from evolution.state import Elite, SearchState

SETTLED_AFTER = 24
"""A new best is confirmed once this many later Candidates did not beat it, or at once if it reaches the target."""
OWED_GAIN = 1.05
MAX_REFUSED = 4
"""After this many refused confirmations of about the same speed, only a clearly faster Candidate is tried."""


def elite_to_confirm(state: SearchState, *, final: bool) -> Elite | None:
    """Return the elite to confirm now, or None. One at a time: each confirmation is against the current Champion.

    The best one is the fastest of those whose lower bound is above Champion and Baseline; else the fastest of all.
    Speedups over the Baseline that is the fastest now come before estimates, which count at the end alone.
    During the search its lower bound must be above the Baseline, its speedup above the Champion's by MARGIN, no better
    one may have appeared lately, and time for another confirmation must remain. `final` means that nothing more will be
    judged: then the best one without a confirmation is returned if it seems faster than Champion and Baseline, beyond
    the noise where the wall time is limited, and time is left or its confirmation is owed.
    """
    if state.open_confirms or not may_confirm(state):
        return None
    best = _best_fresh(state, outdated=final)
    if best is None or best.speedup <= bar(state) or _is_plateau(state, best):
        return None
    if best.outdated and best.retimed and state.open_judgements:
        return None  # it is being timed again
    if final:
        if state.budget.wall_s is not None and not is_worth_confirming(state, best):
            return None
        return best if confirmation_fits(state) or _is_owed(state, best) else None
    target = state.config.target_speedup
    ripe = state.since_best >= SETTLED_AFTER or (target is not None and best.speedup >= target)
    affordable = confirmation_fits(state, times=2)
    return best if ripe and affordable and best.low > 1.0 and best.speedup > bar(state) * MARGIN else None


def owed_confirmation(state: SearchState) -> Elite | None:
    """Return the elite without whose confirmation the Run may not end, even if its time is used up."""
    if state.open_confirms or not may_confirm(state):
        return None
    best = _best_fresh(state, outdated=True)
    return best if best is not None and _is_owed(state, best) else None


def _best_fresh(state: SearchState, *, outdated: bool) -> Elite | None:
    """Return the best elite that was never confirmed, in this Run or as the Champion.

    The speedup of an outdated elite is an estimate. It counts with `outdated` alone, where no other elite is surely
    faster.
    """
    standing = state.champion.hash if state.champion is not None else None
    fresh = [e for e in state.elites if not (e.confirms or e.confirmed) and e.hash != standing]
    current = [e for e in fresh if not e.outdated]
    wanted = fresh if outdated else current
    sure = [e for e in current if e.low > bar(state)] or [e for e in wanted if e.low > bar(state)]
    return max(sure or wanted, key=lambda elite: (elite.speedup, elite.candidate_id), default=None)


def _is_owed(state: SearchState, best: Elite) -> bool:
    """Return True if it is surely faster than Champion and Baseline, and than all that were confirmed without success.

    By an estimate where no time was left to judge it again. So a Run overruns its time for the best one alone, and ends
    after that: one that has a Champion of its own not at all, one whose confirmation failed for a gain of OWED_GAIN.
    """
    if state.champion is not None and state.champion.own:
        return False
    tried = [e.speedup for e in state.elites if e.confirms and not e.confirmed]
    return best.low > bar(state) * (OWED_GAIN if state.confirm_s else 1.0) and best.speedup > max(tried, default=0.0)


def _is_plateau(state: SearchState, best: Elite) -> bool:
    refused = sum(1 for e in state.elites if e.confirms and not e.confirmed and e.speedup * MARGIN >= best.speedup)
    return refused >= MAX_REFUSED
