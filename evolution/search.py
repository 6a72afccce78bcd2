"""The search of a Run. `decide` is called when work has settled; it tops up the work in flight (steady state)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random

from evolution import bandit, spending
from evolution.arms import SEED, TUNER, is_free, is_up, seeds_asked, stats_of, stopped_models
from evolution.confirming import elite_to_confirm, owed_confirmation
from evolution.dispatch import dispatch_due
from evolution.ending import finish, headroom_spent, roofline_reached, target_reached, unjudged
from evolution.parents import breeding_elites, newest_repairable, sample_parent, sample_parents
from evolution.state import ArmStats, Elite, SearchState
from evolution.tunables import key_of
from evolution.tuning import next_configuration
from evolution.types import Arm, Confirm, Decision, EndReason, Finish, Operator, Propose, Retime

TUNER_SHARE = 0.5
"""The inner search gets at least this share of the proposals, while it has something to try."""
MIN_FAMILIES = 2
"""With fewer families, new designs come first: the inner search compares families."""
FIRST_DESIGNS = 5
"""Until this many designs passed, the search asks for new ones and breeds or repairs none..."""
MAX_FIRST_ASKS = 10
"""...for at most this many proposals..."""
FIRST_DIVISOR = 8
"""...and for at most the budget's Candidates divided by this."""
MIN_LOG_GAIN = 0.01
"""The inner search keeps its share while a Configuration may have this log gain over the fastest."""
MAX_FAMILIES = 8
"""The inner search considers this many families, the fastest ones."""
WORTH_RETIMING = 0.95
"""An outdated elite is judged again if its speedup, an estimate, is above this: it may be faster than the Baseline."""
_BREEDING = (Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR)


@dataclass(slots=True)
class _Plan:
    """The decisions of one call, and their costs, which the state does not include yet."""

    decisions: list[Decision] = field(default_factory=list)
    proposals: int = 0
    paid: int = 0
    asked: dict[int, int] = field(default_factory=dict)
    repaired: set[str] = field(default_factory=set)
    tried: dict[str, set[str]] = field(default_factory=dict)


def decide(state: SearchState, rng: Random) -> list[Decision]:
    """Return the next decisions for a Run. Equal states and generators give equal decisions.

    The list is empty only while work is in flight. `Finish` comes alone. No proposal exceeds a budget; for work in
    flight see `evolution.spending`. A confirmation is waited for, and no Run ends without that of its best Candidate
    if the lower bound of its speedup is above 1.
    """
    if spending.wall_budget_used_up(state):
        return _out_of_time(state)
    reached = target_reached(state) or roofline_reached(state)
    if reached is not None:
        return [reached]
    plan = _Plan(decisions=list(_retimed(state)))
    over = _reason_to_stop(state)
    if over is None:
        _top_up(state, plan, rng)
        if not plan.decisions and state.in_flight == 0:
            _propose_dispatch(state, plan, last=True)
        if not plan.decisions and state.in_flight == 0:
            over = _nothing_left(state)
    quiet = over is not None and state.in_flight == 0 and not plan.decisions
    best = elite_to_confirm(state, final=quiet or spending.last_chance_to_confirm(state))
    if best is not None:
        plan.decisions.append(Confirm(candidate_id=best.candidate_id))
    if not plan.decisions and state.idle:
        return [over or _nothing_left(state)]
    return plan.decisions


def _out_of_time(state: SearchState) -> list[Decision]:
    """Return the decisions of a Run without wall time: the end, unless a confirmation is under way or owed."""
    if state.open_confirms:
        return []
    owed = owed_confirmation(state)
    if owed is not None:
        return [Confirm(candidate_id=owed.candidate_id)]
    return [finish(state, EndReason.BUDGET, f"The time budget is used up.{unjudged(state)}")]


def _reason_to_stop(state: SearchState) -> Finish | None:
    """Return the end of a Run that may propose nothing more, or None."""
    limit = state.budget.candidates
    if limit is not None and state.spend.candidates >= limit:
        return finish(state, EndReason.BUDGET, f"The budget of {limit} candidates is used up.")
    if not spending.may_judge(state) and state.in_flight == 0:
        return finish(state, EndReason.BUDGET, "The remaining time is too short for another candidate.")
    if state.since_best >= state.config.stagnation_candidates:
        return finish(state, EndReason.STAGNATED, f"None of the last {state.since_best} candidates was faster.")
    return headroom_spent(state)


def _nothing_left(state: SearchState) -> Finish:
    """Return the end of a Run that has budget left but no arm left to ask."""
    arms = [arm for arm in stats_of(state) if arm.arm.operator is not Operator.TUNE]
    up = [arm for arm in arms if is_up(arm)]
    too_dear = any(not is_free(arm.arm) for arm in up) and not spending.may_ask_model(state)
    if too_dear or any(arm.broke for arm in arms):
        return finish(state, EndReason.BUDGET, "The budget for model calls is used up.")
    if not any(arm.candidates for arm in state.arms):
        names = ", ".join(state.config.proposers) or "none was named"
        return finish(state, EndReason.NO_PROPOSER, f"No proposer gave a candidate ({names}).")
    stopped = "".join(f" {name} was stopped: {fault.words}." for name, fault in stopped_models(state).items())
    return finish(state, EndReason.STAGNATED, f"All proposers are exhausted.{stopped}")


def _top_up(state: SearchState, plan: _Plan, rng: Random) -> None:
    stats = stats_of(state)
    room = state.config.in_flight - state.in_flight
    seeds = list(range(seeds_asked(state), len(state.config.seed_sources) + len(state.warm_starts)))
    if room > 0:
        _propose_dispatch(state, plan, last=False)
    turn = _asks(state)  # without the tuner's: it works on its family's island
    while len(plan.decisions) < room:
        if not spending.may_propose(state, plan.proposals):
            return
        island = turn % state.config.islands
        decision = _seed(state, seeds.pop(0), island) if seeds else _next(state, plan, stats, island, rng)
        if decision is None:
            return
        plan.decisions.append(decision)
        if isinstance(decision, Propose):
            plan.proposals += 1
            turn += decision.arm != TUNER


def _retimed(state: SearchState) -> list[Retime]:
    """Judge elites again whose Baseline a later one has overtaken, best first, as far as the budget allows.

    The Run's best comes before judgements that wait: knowing its speedup is worth more than another Candidate. One that
    is being confirmed is left out, since a confirmation times every Baseline.
    """
    ranked = sorted(state.elites, key=lambda elite: (-elite.speedup, elite.candidate_id))
    late = [e for e in ranked if e.outdated and not e.retimed and not (state.open_confirms and e.confirms)]
    due = [e for e in late if e.speedup > WORTH_RETIMING]
    first = due[:1] if due[:1] == ranked[:1] and spending.may_retime_first(state) else []
    found = [Retime(candidate_id=e.candidate_id, first=True) for e in first]
    for elite in due[len(first) :]:
        if spending.may_judge(state, len(found)):
            found.append(Retime(candidate_id=elite.candidate_id))
    return found


def _propose_dispatch(state: SearchState, plan: _Plan, *, last: bool) -> None:
    """Propose a dispatch over several kernels, if one is due."""
    found = dispatch_due(state, last=last) if spending.may_propose(state) else None
    if found is not None:
        plan.decisions.append(found)
        plan.proposals += 1


def _seed(state: SearchState, index: int, island: int) -> Propose:
    given = len(state.config.seed_sources)
    hint = {"seed": index} if index < given else {"candidate_id": state.warm_starts[index - given]}
    return Propose(arm=SEED, island=island, hint=hint)


def _next(state: SearchState, plan: _Plan, stats: list[ArmStats], island: int, rng: Random) -> Decision | None:
    """Return one more step on an island: the bandit's arm, or its next choice if that has nothing to work on.

    The inner search over Tunables needs no model call, so it gets its share before the bandit chooses.
    """
    if len(state.families) >= MIN_FAMILIES and _tuning_is_due(plan, stats):
        tuned = _tune(state, plan, TUNER, rng, least=MIN_LOG_GAIN)
        if tuned is not None:
            index = next(i for i, arm in enumerate(stats) if arm.arm == TUNER)
            plan.asked[index] = plan.asked.get(index, 0) + 1
            return tuned
    breeders = breeding_elites(state.elites, island, rng)
    left = [i for i, arm in enumerate(stats) if _usable(state, plan, arm)]
    if _is_first(state, plan) and any(stats[i].arm.operator is Operator.CREATE for i in left):
        left = [i for i in left if stats[i].arm.operator not in _BREEDING]
    while left:
        index = left[
            bandit.choose([stats[i] for i in left], {k: plan.asked.get(i, 0) for k, i in enumerate(left)}, rng)
        ]
        decision = _step(state, plan, stats[index].arm, island, breeders, rng)
        if decision is not None:
            if isinstance(decision, Propose):
                plan.asked[index] = plan.asked.get(index, 0) + 1
                plan.paid += not is_free(decision.arm)
            return decision
        left.remove(index)
    return None


def _tuning_is_due(plan: _Plan, stats: list[ArmStats]) -> bool:
    """Return True if the tuner got less than its share of the proposals."""
    asked = {arm.arm: arm.asked + plan.asked.get(i, 0) for i, arm in enumerate(stats)}
    return TUNER in asked and asked[TUNER] < TUNER_SHARE * (sum(asked.values()) + 1)


def _usable(state: SearchState, plan: _Plan, arm: ArmStats) -> bool:
    return is_up(arm) and (is_free(arm.arm) or spending.may_ask_model(state, plan.paid))


def _is_first(state: SearchState, plan: _Plan) -> bool:
    """Return True while the first designs are collected: good kernels are built from parts of some first draft."""
    limit = state.budget.candidates
    wanted = FIRST_DESIGNS if limit is None else min(FIRST_DESIGNS, limit // FIRST_DIVISOR)
    return len(state.elites) < wanted and _asks(state) + plan.proposals < MAX_FIRST_ASKS


def _asks(state: SearchState) -> int:
    """Return the number of proposals without those of the inner search."""
    return sum(arm.asked for arm in state.arms if arm.arm != TUNER)


def _step(
    state: SearchState, plan: _Plan, arm: Arm, island: int, breeders: list[Elite], rng: Random
) -> Decision | None:
    match arm.operator:
        case Operator.CREATE:
            return Propose(arm=arm, island=island)
        case Operator.TUNE:
            return _tune(state, plan, arm, rng)
        case Operator.REPAIR:
            broken = newest_repairable(state.broken, frozenset(plan.repaired))
            if broken is None:
                return None
            plan.repaired.add(broken.candidate_id)
            return Propose(arm=arm, island=island, parents=(broken.candidate_id,))
        case Operator.CROSSOVER:
            if len(breeders) < 2:
                return None
            return _propose_child(arm, island, *sample_parents(breeders, rng))
        case Operator.REWRITE | Operator.DIFF:
            return _propose_child(arm, island, sample_parent(breeders, rng)) if breeders else None


def _propose_child(arm: Arm, island: int, *parents: Elite) -> Propose:
    return Propose(arm=arm, island=island, parents=tuple(parent.candidate_id for parent in parents))


def _tune(state: SearchState, plan: _Plan, arm: Arm, rng: Random, *, least: float = -math.inf) -> Decision | None:
    """Propose the most promising untried Configuration on its family's island; this call's own count as tried."""
    families = [replace(f, tried=f.tried | plan.tried.get(f.family, frozenset())) for f in state.families]
    found = next_configuration(families, rng, least=least)
    if found is None:
        return None
    family, configuration = found
    plan.tried.setdefault(family.family, set()).add(key_of(configuration))
    hint = {"configuration": configuration, "family": family.family}
    return Propose(arm=arm, island=family.island, parents=(family.candidate_id,), hint=hint)
