"""When a Run is over, and what it says then."""

from __future__ import annotations

from evolution.state import SearchState
from evolution.types import EndReason, Finish


def target_reached(state: SearchState) -> Finish | None:
    """The end of a Run whose confirmed Champion reached the target."""
    target, champion = state.config.target_speedup, state.champion
    if target is None or champion is None or champion.speedup < target:
        return None
    text = f"The Champion runs {champion.speedup:.2f} times as fast as the fastest baseline; {target:g} was asked for."
    return Finish(reason=EndReason.TARGET_REACHED, message=text)


def roofline_reached(state: SearchState) -> Finish | None:
    """The end of a Run whose confirmed Champion is so near to what its device allows that little is left to gain."""
    share, champion = state.config.roofline_share, state.champion
    if share is None or champion is None or champion.attained is None or champion.attained < share:
        return None
    text = (
        f"The Champion attains {champion.attained:.0%} of what memory allows ({share:.0%} ends a run): next to nothing "
        f"is left to gain. It runs {champion.speedup:.2f} times as fast as the fastest baseline."
    )
    return Finish(reason=EndReason.ROOFLINE_REACHED, message=text)


def finish(state: SearchState, why: EndReason, words: str) -> Finish:
    """The end of a Run for a reason; without a Champion the reason is no_improvement, with advice.

    A Run that never judged anything keeps the plain reason: it learned nothing about the Problem.
    """
    if state.champion is not None:
        whose = "The Champion" if state.champion.own else "The Champion of an earlier run still stands: it"
        return Finish(
            reason=why,
            message=f"{words} {whose} runs {state.champion.speedup:.2f} times as fast as the fastest baseline.",
        )
    if why is EndReason.NO_PROPOSER or not state.judged_any:
        return Finish(reason=why, message=words)
    advice = f" Use {state.baseline}." if state.baseline else ""
    best = max(state.elites, key=lambda elite: elite.speedup, default=None)
    seen = f" The best candidate ran {best.speedup:.2f} times as fast." if best is not None else ""
    return Finish(
        reason=EndReason.NO_IMPROVEMENT,
        message=f"{words} Nothing was confirmed to be faster than the fastest baseline.{seen}{advice}",
    )
