"""The ends of a Run and their messages."""

from __future__ import annotations

import math

from evolution.arms import is_free, is_up, stats_of
from evolution.state import SearchState
from evolution.types import EndReason, Finish

USUAL_SHARE = 0.25
"""A faster kernel closes this share of the log distance to the roofline."""
LEAST_EXPECTED = 0.002
"""A model call is worth its price if its expected log gain is at least this."""


def target_reached(state: SearchState) -> Finish | None:
    """Return the end of a Run if its confirmed Champion reached the target."""
    target, champion = state.config.target_speedup, state.champion
    if target is None or champion is None or champion.speedup < target:
        return None
    text = f"The champion is {champion.speedup:.2f}x as fast as the fastest baseline; the target was {target:g}x."
    return Finish(reason=EndReason.TARGET_REACHED, message=text)


def roofline_reached(state: SearchState) -> Finish | None:
    """Return the end of a Run if its confirmed Champion is close to the device's memory roofline."""
    share, champion = state.config.roofline_share, state.champion
    if share is None or champion is None or champion.attained is None or champion.attained < share:
        return None
    text = (
        f"The champion attains {100 * champion.attained:.0f} % of the memory roofline (a run ends at "
        f"{100 * share:.0f} %), so hardly any gain is left. "
        f"It is {champion.speedup:.2f}x as fast as the fastest baseline."
    )
    return Finish(reason=EndReason.ROOFLINE_REACHED, message=text)


def headroom_spent(state: SearchState) -> Finish | None:
    """Return the end of a Run whose headroom left is not worth the next model call.

    After n answers in a row without a gain, the next one gains with a chance of about 1 / (n + 2) (Laplace's rule of
    succession), and then a usual share of the log distance to the roofline. A Run that ignores the roofline goes on,
    and so does one that asks no model: its Candidates cost no money.
    """
    champion = state.champion
    if state.config.roofline_share is None or champion is None or champion.attained is None:
        return None
    if not any(is_up(arm) and not is_free(arm.arm) for arm in stats_of(state)):
        return None
    expected = USUAL_SHARE * -math.log(champion.attained) / (state.since_best + 2)
    if expected >= LEAST_EXPECTED:
        return None
    text = (
        f"The champion attains {100 * champion.attained:.0f} % of the memory roofline, and none of the last "
        f"{state.since_best} candidates was faster: another model call is expected to gain {100 * expected:.1f} %, "
        f"which is not worth its price. It is {champion.speedup:.2f}x as fast as the fastest baseline."
    )
    return Finish(reason=EndReason.STAGNATED, message=text)


def finish(state: SearchState, why: EndReason, words: str) -> Finish:
    """Return the end of a Run for a reason. Without a Champion the reason becomes no_improvement, with advice.

    A Run that judged nothing keeps its reason: it found out nothing about the Problem.
    """
    if state.champion is not None:
        subject = "The champion" if state.champion.own else "The champion of an earlier run is still the fastest: it"
        text = f"{words} {subject} is {state.champion.speedup:.2f}x as fast as the fastest baseline."
        return Finish(reason=why, message=text)
    if why is EndReason.NO_PROPOSER or not state.judged_any:
        return Finish(reason=why, message=words)
    advice = f" Use {state.baseline}." if state.baseline else ""
    return Finish(
        reason=EndReason.NO_IMPROVEMENT,
        message=f"{words} No candidate was confirmed to be faster than the fastest baseline.{_best(state)}{advice}",
    )


def unjudged(state: SearchState) -> str:
    """Return in words that a Run out of time judged nothing, with what to do; "" if it did."""
    if state.judged_any:
        return ""
    made = state.spend.candidates
    found = f"Of {made} candidate{'s' * (made != 1)} none was judged" if made else "No candidate was made"
    return f" {found}: the time was short, or other work kept the device busy. Give the search more seconds."


def _best(state: SearchState) -> str:
    """Return the best Candidate's speedup in words, and whether it is an estimate; "" if none passed."""
    best = state.best
    if best is None:
        return ""
    if best.outdated:
        return (
            f" The best candidate is estimated to be {best.speedup:.2f}x as fast: it was timed against a slower"
            " baseline, before the fastest one had compiled."
        )
    return f" The best candidate was {best.speedup:.2f}x as fast."
