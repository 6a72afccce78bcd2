"""Budgets: hard limits, checked before spending. Work in flight counts as already spent, but see `may_retime_first`."""

from __future__ import annotations

from evolution.arms import is_free
from evolution.state import Elite, SearchState

CONFIRM_PER_JUDGE, CONFIRM_S = 3.0, 25.0
"""The assumed cost of a confirmation until the first one: in judgements, or in seconds if that is more."""
NOTHING_YET_SHARE = 0.5
"""While no Candidate is worth a confirmation, this share of it is kept: the rest of the time may still find one."""
MAX_RESERVED_SHARE = 0.5
"""At most this share of a device or wall budget is reserved for confirmations."""
MARGIN = 1.02
"""A speedup over Champion and Baseline by this factor is worth a confirmation, whatever its interval."""


def bar(state: SearchState) -> float:
    """Return the speedup over the fastest Baseline that a Candidate has to beat: the Champion's, 1 without one."""
    return max(1.0, state.champion.speedup if state.champion is not None else 1.0)


def is_worth_confirming(state: SearchState, elite: Elite) -> bool:
    """Return whether an elite's speedup, or its lower bound, is above what noise makes of an equal kernel.

    A promotion asks for a gain of one per cent that is sure: within the noise it costs several judgements for nothing.
    """
    least = bar(state)
    return elite.speedup > least * MARGIN or elite.low > least


def wall_budget_used_up(state: SearchState) -> bool:
    """Return True if no wall time is left."""
    return state.budget.wall_s is not None and state.spend.wall_s >= state.budget.wall_s


def reserve_s(state: SearchState) -> float:
    """Return the device-seconds to reserve for one confirmation, so that a budget does not end without one."""
    return state.confirm_s or max(CONFIRM_PER_JUDGE * state.judge_s, CONFIRM_S)


def kept_s(state: SearchState, limit_s: float) -> float:
    """Return the part of a limit that is kept for a confirmation; half of it while nothing is worth one."""
    kept = min(reserve_s(state), MAX_RESERVED_SHARE * limit_s)
    waits = any(is_worth_confirming(state, e) and not (e.confirms or e.confirmed) for e in state.elites)
    return kept if waits else NOTHING_YET_SHARE * kept


def _committed_s(state: SearchState) -> float:
    return state.in_flight * state.judge_s + state.open_confirms * reserve_s(state)


def may_judge(state: SearchState, more: int = 0) -> bool:
    """Return True if device and wall budgets allow one judgement on top of `more` that were decided just now."""
    return _fits(state, _committed_s(state) + (more + 1) * state.judge_s)


def may_retime_first(state: SearchState) -> bool:
    """Return True if device and wall budgets allow judging the best elite again, before judgements that wait.

    Those need not fit behind it: they are not begun once a budget is used up.
    """
    under_way = sum(1 for elite in state.elites if elite.outdated and elite.retimed)
    return _fits(state, state.open_confirms * reserve_s(state) + (under_way + 1) * state.judge_s)


def _fits(state: SearchState, need_s: float) -> bool:
    """Return True if device and wall budgets allow so many more seconds, and a confirmation after them."""
    if state.budget.device_s is not None:
        keep = kept_s(state, state.budget.device_s)
        used_s = state.spend.device_s
        if used_s >= state.budget.device_s or used_s + need_s + keep > state.budget.device_s:
            return False
    if state.budget.wall_s is not None:
        # Assume one device: with several, a Run stops a little early rather than without a confirmation.
        keep = kept_s(state, state.budget.wall_s)
        used_s = state.spend.wall_s
        if used_s >= state.budget.wall_s or used_s + need_s + keep > state.budget.wall_s:
            return False
    return True


def last_chance_to_confirm(state: SearchState) -> bool:
    """Return True if a confirmation must start now to end within the wall budget, after one judgement."""
    wall_s = state.budget.wall_s
    return wall_s is not None and state.spend.wall_s + kept_s(state, wall_s) + state.judge_s >= wall_s


def confirmation_fits(state: SearchState, times: int = 1) -> bool:
    """Return True if so many confirmations would end within the wall budget, as far as one can tell."""
    wall_s = state.budget.wall_s
    return wall_s is None or state.spend.wall_s + times * kept_s(state, wall_s) <= wall_s + state.judge_s


def may_confirm(state: SearchState) -> bool:
    """Return True if a confirmation may start within the budget of device-seconds, where its cost was reserved."""
    device_s = state.budget.device_s
    return device_s is None or state.spend.device_s + _committed_s(state) < device_s


def may_propose(state: SearchState, more: int = 0) -> bool:
    """Return True if the budget allows one more Proposal, after `more` that were decided just now."""
    limit = state.budget.candidates
    return (limit is None or state.spend.candidates + more < limit) and may_judge(state, more)


def may_ask_model(state: SearchState, more: int = 0) -> bool:
    """Return True if the budget allows one more model call. Calls in flight count with the mean cost of past ones."""
    paid = [arm for arm in state.arms if not is_free(arm.arm)]
    settled = sum(arm.settled for arm in paid)
    waiting = sum(arm.asked - arm.settled for arm in paid) + more
    mean_tokens = sum(arm.tokens for arm in paid) / settled if settled else 0.0
    mean_usd = sum(arm.usd for arm in paid) / settled if settled else 0.0
    tokens, usd = state.budget.tokens, state.budget.usd
    return (
        tokens is None or (state.spend.tokens < tokens and state.spend.tokens + waiting * mean_tokens < tokens)
    ) and (usd is None or (state.spend.usd < usd and state.spend.usd + waiting * mean_usd < usd))
