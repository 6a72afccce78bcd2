"""The search as a whole: budgets hold, it ends, it is deterministic, islands live, good arms win."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.types import Language, Verdict
from evolution.arms import TUNER
from evolution.confirming import elite_to_confirm, owed_confirmation
from evolution.parents import breeding_elites, sample_parent, sample_parents
from evolution.search import decide
from evolution.state import ArmStats, Broken, Elite, SearchState, StandingChampion
from evolution.types import (
    Arm,
    Budget,
    Confirm,
    EndReason,
    Finish,
    Operator,
    Propose,
    RunConfig,
    Spend,
)
from tests.evolution.simulation import Simulation

budgets = st.builds(
    Budget,
    candidates=st.integers(1, 60),
    tokens=st.none() | st.integers(1, 5000),
    usd=st.none() | st.floats(0.01, 5.0),
    device_s=st.none() | st.floats(0.5, 200.0),
    wall_s=st.none() | st.floats(0.5, 200.0),
)
configs = st.builds(
    RunConfig,
    proposers=st.lists(st.sampled_from(["synthesiser", "model-a", "model-b", "replay:x"]), max_size=3).map(tuple),
    islands=st.integers(1, 5),
    in_flight=st.integers(1, 9),
    stagnation_candidates=st.integers(1, 50),
    target_speedup=st.none() | st.floats(1.0, 3.0),
    seed_sources=st.lists(st.just("x"), max_size=3).map(tuple),
)


@given(budgets, configs, st.integers(0, 2**32), st.floats(0.5, 2.0), st.floats(0.1, 10.0), st.integers(0, 3))
def test_every_search_ends_within_its_budget(
    budget: Budget, config: RunConfig, seed: int, quality: float, judge_s: float, overtakes: int
) -> None:
    names = dict.fromkeys(config.proposers, quality)
    world = Simulation(
        budget,
        config,
        Random(seed),
        quality=names,
        limit={"synthesiser": 5, "replay:x": 2},
        usd=0.02,
        tokens=100,
        judge_s=judge_s,
        overtakes=overtakes,
    )
    end = world.run()
    assert end.message
    spend = world.spend
    assert budget.candidates is None or spend.candidates <= budget.candidates
    assert budget.usd is None or spend.usd <= budget.usd + config.in_flight * world.usd
    assert budget.tokens is None or spend.tokens <= budget.tokens + config.in_flight * world.tokens
    confirming = 4 * judge_s
    assert budget.device_s is None or spend.device_s <= budget.device_s + config.in_flight * judge_s + confirming
    assert (end.reason is EndReason.NO_IMPROVEMENT) <= (world.champion is None)


@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_islands_never_collapse_into_one(islands: int, seed: int) -> None:
    config = RunConfig(proposers=("model-a",), islands=islands, in_flight=3, stagnation_candidates=10_000)
    world = Simulation(Budget(candidates=120), config, Random(seed))
    world.run()
    asked = Counter(d.island for d in world.log if isinstance(d, Propose) and d.arm != TUNER)
    assert set(asked) == set(range(islands))
    assert max(asked.values()) - min(asked.values()) <= 1
    assert len({e.island for e in world.elites.values()}) == islands


def test_islands_exchange_migrants() -> None:
    config = RunConfig(proposers=("model-a",), islands=2, stagnation_candidates=10_000)
    world = Simulation(Budget(candidates=300), config, Random(1))
    homes: dict[str, int] = {}
    for _ in range(3):
        world.run()
    homes = {e.candidate_id: e.island for e in world.elites.values()}
    crossed = [d for d in world.log if isinstance(d, Propose) for p in d.parents if p in homes and homes[p] != d.island]
    assert crossed


def test_the_better_arm_is_asked_more() -> None:
    config = RunConfig(proposers=("model-a", "model-b"), stagnation_candidates=10_000)
    world = Simulation(Budget(candidates=300), config, Random(5), quality={"model-a": 2.0, "model-b": 0.5})
    for arm, reward in (("model-a", 1.0), ("model-b", 0.0)):
        for operator in (Operator.CREATE, Operator.REWRITE):
            key = Arm(proposer=arm, operator=operator)
            world.arms[key] = ArmStats(
                arm=key, asked=20, settled=20, candidates=20, judged=20, passed=20, reward=20 * reward, device_s=20.0
            )
    world.run()
    asked = Counter(d.arm.proposer for d in world.log if isinstance(d, Propose))
    assert asked["model-a"] > 2 * asked["model-b"]


def test_the_dearer_of_two_equal_arms_is_asked_less() -> None:
    stats = tuple(
        ArmStats(
            arm=Arm(proposer=name, operator=Operator.CREATE), asked=50, settled=50, reward=25.0, usd=usd, device_s=50
        )
        for name, usd in (("model-cheap", 0.5), ("model-dear", 50.0))
    )
    config = RunConfig(proposers=("model-cheap", "model-dear"), in_flight=8)
    state = SearchState(config=config, budget=Budget(candidates=500), spend=Spend(candidates=100), arms=stats)
    asked: Counter[str] = Counter()
    for seed in range(20):
        asked.update(d.arm.proposer for d in decide(state, Random(seed)) if isinstance(d, Propose))
    assert asked["model-cheap"] > asked["model-dear"]


def elite(number: int, speedup: float, **changes: object) -> Elite:
    values: dict[str, object] = {
        "candidate_id": f"cand_{number}",
        "number": number,
        "island": 0,
        "language": Language.CPP,
        "speedup": speedup,
        "low": speedup * 0.97,
        "hash": f"h{number}",
    }
    return Elite(**(values | changes))  # type: ignore[arg-type]


def ended(state: SearchState) -> Finish:
    [decision] = decide(state, Random(0))
    assert isinstance(decision, Finish)
    return decision


SPENT = SearchState(
    config=RunConfig(),
    budget=Budget(candidates=4),
    spend=Spend(candidates=4),
    judged_any=True,
    baseline="compile (20 us)",
)


def changed(state: SearchState, **changes: object) -> SearchState:
    from dataclasses import replace

    return replace(state, **changes)  # type: ignore[arg-type]


def test_the_best_is_confirmed_before_the_end() -> None:
    state = changed(SPENT, elites=(elite(1, 1.5), elite(2, 1.2)))
    assert decide(state, Random(0)) == [Confirm(candidate_id="cand_1")]
    assert decide(changed(state, open_confirms=1), Random(0)) == []


def test_a_champion_is_not_confirmed_against_itself() -> None:
    champion = StandingChampion(candidate_id="cand_9", hash="h1", speedup=1.4, own=False)
    end = ended(changed(SPENT, elites=(elite(1, 1.5),), champion=champion))
    assert end.reason is EndReason.BUDGET
    assert "earlier run" in end.message


def test_no_improvement_gives_the_baseline_as_advice() -> None:
    end = ended(changed(SPENT, elites=(elite(1, 0.8),)))
    assert end.reason is EndReason.NO_IMPROVEMENT
    assert "compile (20 us)" in end.message


def test_the_wall_clock_ends_a_run_at_once() -> None:
    state = changed(SPENT, budget=Budget(wall_s=10), spend=Spend(wall_s=10.5), open_proposals=3)
    assert ended(state).reason in (EndReason.BUDGET, EndReason.NO_IMPROVEMENT)


def test_a_confirmation_in_flight_outlives_the_wall_clock() -> None:
    state = changed(SPENT, budget=Budget(wall_s=10), spend=Spend(wall_s=10.5), open_confirms=1)
    assert decide(state, Random(0)) == []


@pytest.mark.parametrize(("made", "words"), [(0, "No candidate was made:"), (1, "Of 1 candidate none was judged:"),
                                             (4, "Of 4 candidates none was judged:")])  # fmt: skip
def test_a_run_out_of_time_says_that_it_judged_nothing(made: int, words: str) -> None:
    state = SearchState(config=RunConfig(), budget=Budget(wall_s=10), spend=Spend(candidates=made, wall_s=11))
    end = ended(state)
    assert end.reason is EndReason.BUDGET
    assert end.message.startswith(f"The time budget is used up. {words}")
    assert end.message.endswith("Give the search more seconds.")
    assert "judged" not in ended(changed(state, judged_any=True)).message


def test_the_last_of_the_wall_clock_goes_to_a_confirmation() -> None:
    """Others still in flight, the elite judged once: no time is left for anything else."""
    state = SearchState(
        config=RunConfig(), budget=Budget(wall_s=60), spend=Spend(wall_s=40), judge_s=5.0, confirm_s=18.0,
        elites=(elite(1, 1.5),), open_judgements=2,
    )  # fmt: skip
    assert decide(state, Random(0)) == [Confirm(candidate_id="cand_1")]
    early = changed(state, spend=Spend(wall_s=1))
    assert Confirm(candidate_id="cand_1") not in decide(early, Random(0))


def test_no_run_ends_without_the_confirmation_of_its_best() -> None:
    """The time went to another confirmation meanwhile; what is not surely faster gets no more of it."""
    late = changed(SPENT, budget=Budget(wall_s=60), spend=Spend(wall_s=61), judge_s=2.0, confirm_s=20.0)
    refused = elite(1, 1.14, confirms=1)
    assert decide(changed(late, elites=(refused, elite(2, 2.01))), Random(0)) == [Confirm(candidate_id="cand_2")]
    assert decide(changed(late, elites=(refused, elite(2, 2.01)), open_confirms=1), Random(0)) == []
    for other in (elite(2, 1.3, low=0.9), elite(2, 1.12), elite(2, 1.5, confirms=1)):
        assert ended(changed(late, elites=(refused, other))).reason is EndReason.NO_IMPROVEMENT
    champion = StandingChampion(candidate_id="cand_3", hash="h3", speedup=1.8, own=False)
    assert ended(changed(late, elites=(elite(2, 1.7),), champion=champion)).reason is EndReason.BUDGET
    faster = changed(late, elites=(elite(2, 1.9, low=1.85),), champion=champion, confirm_s=0.0)
    assert decide(faster, Random(0)) == [Confirm(candidate_id="cand_2")], "nothing was confirmed yet"


def test_a_run_with_a_champion_ends_when_its_time_is_up() -> None:
    late = changed(SPENT, budget=Budget(wall_s=60), spend=Spend(wall_s=61), judge_s=2.0, confirm_s=20.0)
    champion = StandingChampion(candidate_id="cand_3", hash="h3", speedup=1.8, own=True)
    seems_faster = changed(late, elites=(elite(2, 2.5),), champion=champion)
    assert ended(seems_faster).reason is EndReason.BUDGET
    assert owed_confirmation(changed(seems_faster, champion=replace(champion, own=False))) is not None


@pytest.mark.parametrize(("low", "again"), [(1.04, False), (1.06, True)])
def test_after_a_refused_confirmation_a_run_overruns_its_time_for_a_clear_gain_alone(low: float, again: bool) -> None:
    late = changed(SPENT, budget=Budget(wall_s=60), spend=Spend(wall_s=150), judge_s=2.0, confirm_s=90.0)
    state = changed(late, elites=(elite(1, 1.01, confirms=1), elite(2, 1.08, low=low)))
    assert (decide(state, Random(0)) == [Confirm(candidate_id="cand_2")]) is again


def test_what_is_surely_faster_is_confirmed_not_the_luckiest() -> None:
    state = changed(SPENT, elites=(elite(1, 1.53, low=0.7), elite(2, 1.32, low=1.12), elite(3, 1.3, low=1.28)))
    assert decide(state, Random(0)) == [Confirm(candidate_id="cand_2")]
    unsure = changed(SPENT, elites=(elite(1, 1.53, low=0.7), elite(2, 1.32, low=0.9)))
    assert decide(unsure, Random(0)) == [Confirm(candidate_id="cand_1")], "the last chance is taken all the same"


def test_an_estimate_comes_after_what_is_surely_faster() -> None:
    estimated, timed = elite(1, 1.9, outdated=True), elite(2, 1.4)
    state = changed(SPENT, elites=(estimated, timed))
    found = elite_to_confirm(state, final=True)
    assert found is not None
    assert found.number == 2
    champion = StandingChampion(candidate_id="cand_2", hash="h2", speedup=1.4, own=False)
    for other in (changed(state, elites=(estimated,)), changed(state, champion=champion)):
        assert elite_to_confirm(other, final=True) == owed_confirmation(other) == estimated
    faster = StandingChampion(candidate_id="cand_2", hash="h2", speedup=2.4, own=True)
    assert owed_confirmation(changed(state, champion=faster)) is None


def test_time_for_the_last_confirmation_is_reserved() -> None:
    config = RunConfig(proposers=("model-a",), in_flight=1)
    state = SearchState(config=config, budget=Budget(wall_s=100), spend=Spend(wall_s=70), judge_s=2.0)
    found = changed(state, elites=(elite(1, 1.5),))
    for one, latest in ((found, 72), (state, 85)):  # 25 s are kept, and half of that while there is nothing to confirm
        assert [d for d in decide(changed(one, spend=Spend(wall_s=latest)), Random(0)) if isinstance(d, Propose)]
        late = decide(changed(one, spend=Spend(wall_s=latest + 4)), Random(0))
        assert not [d for d in late if isinstance(d, Propose)]
    ripe = changed(state, since_best=30, elites=(elite(1, 1.5),), spend=Spend(wall_s=40))
    assert elite_to_confirm(ripe, final=False) is not None
    assert elite_to_confirm(changed(ripe, spend=Spend(wall_s=60)), final=False) is None, "no time for a second one"


def test_what_lies_within_the_noise_does_not_end_a_search_early() -> None:
    config = RunConfig(proposers=("model-a",), in_flight=1)
    state = SearchState(config=config, budget=Budget(wall_s=100), spend=Spend(wall_s=85), judge_s=2.0)
    near, sure, clear = elite(1, 1.005, low=0.97), elite(1, 1.005, low=1.001), elite(1, 1.03, low=0.99)
    assert [d for d in decide(changed(state, elites=(near,)), Random(0)) if isinstance(d, Propose)]
    for one in (sure, clear):
        assert not [d for d in decide(changed(state, elites=(one,)), Random(0)) if isinstance(d, Propose)]
    late = {one: changed(state, elites=(one,), spend=Spend(wall_s=76)) for one in (near, sure, clear)}
    assert [elite_to_confirm(late[one], final=True) for one in (near, sure, clear)] == [None, sure, clear]
    unhurried = changed(late[near], budget=Budget(candidates=80))
    assert elite_to_confirm(unhurried, final=True) == near, "time is not short"


def test_a_failing_endpoint_is_left_alone() -> None:
    arms = tuple(
        ArmStats(arm=Arm(proposer="model-a", operator=operator), asked=3, settled=3, errors_in_row=3)
        for operator in Operator
    )
    state = SearchState(config=RunConfig(proposers=("model-a",)), budget=Budget(candidates=9), spend=Spend(), arms=arms)
    assert ended(state).reason is EndReason.NO_PROPOSER


def operators(state: SearchState) -> set[Operator]:
    return {d.arm.operator for seed in range(40) for d in decide(state, Random(seed)) if isinstance(d, Propose)}


def test_a_few_designs_come_before_anything_is_bred() -> None:
    config = RunConfig(proposers=("model-a",), in_flight=4)
    asked = ArmStats(arm=Arm(proposer="model-a", operator=Operator.CREATE), asked=6, settled=6)
    state = SearchState(
        config=config, budget=Budget(candidates=80), spend=Spend(candidates=6), arms=(asked,),
        elites=(elite(1, 1.5), elite(2, 1.2)), broken=(Broken(candidate_id="b", island=0, verdict=Verdict.TIMEOUT),),
    )  # fmt: skip
    assert operators(state) == {Operator.CREATE}
    enough = tuple(elite(number, 1.0) for number in range(5))
    every = {Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR}
    assert operators(changed(state, elites=enough)) >= every
    assert operators(changed(state, budget=Budget(candidates=10))) >= every, "a short Run improves what it has"
    for many in (10, 20):  # whoever repeats itself or fails is not asked for ever
        assert operators(changed(state, arms=(replace(asked, asked=many, settled=many),))) >= every


def test_first_designs_wait_for_nobody_who_cannot_write_them() -> None:
    config = RunConfig(proposers=("model-a",), in_flight=4)
    down = ArmStats(arm=Arm(proposer="model-a", operator=Operator.CREATE), asked=6, settled=6, errors_in_row=3)
    for silent in (down, replace(down, errors_in_row=0, exhausted=True), replace(down, errors_in_row=0, broke=True)):
        state = SearchState(
            config=config, budget=Budget(candidates=80), spend=Spend(candidates=6), arms=(silent,),
            elites=(elite(1, 0.9), elite(2, 0.8)),
        )  # fmt: skip
        assert operators(state) >= {Operator.REWRITE, Operator.DIFF}


def test_a_plateau_is_not_confirmed_for_ever_and_what_is_clearly_faster_always() -> None:
    config = RunConfig(proposers=("model-a",), islands=1)
    refused = tuple(elite(number, 1.5, confirms=1, low=1.45) for number in range(4))
    state = SearchState(
        config=config, budget=Budget(candidates=80), spend=Spend(candidates=40), since_best=30,
        elites=(*refused, elite(9, 1.49, low=1.44)),
    )  # fmt: skip
    assert elite_to_confirm(state, final=False) is None
    assert elite_to_confirm(state, final=True) is None
    faster = changed(state, elites=(*state.elites, elite(10, 3.0, low=2.9)))
    for final in (False, True):
        found = elite_to_confirm(faster, final=final)
        assert found is not None
        assert found.number == 10
    assert elite_to_confirm(changed(state, elites=state.elites[1:]), final=False) is not None


def test_the_fast_breed_more_often_and_the_slow_too() -> None:
    elites = (elite(1, 2.0), elite(2, 1.0), elite(3, 0.5))
    drawn = Counter(sample_parent(elites, Random(seed)).number for seed in range(2000))
    assert drawn[1] > 3 * drawn[2] > 9 * drawn[3] > 0
    assert {parent.number for parent in sample_parents(elites[:2], Random(1))} == {1, 2}
    assert sample_parent((elite(1, 0.0),), Random(0)).number == 1


def test_seeds_come_first() -> None:
    config = RunConfig(seed_sources=("a", "b"), in_flight=4)
    state = SearchState(config=config, budget=Budget(candidates=9), spend=Spend(), warm_starts=("cand_old",))
    proposed = [d for d in decide(state, Random(0)) if isinstance(d, Propose)]
    assert [d.hint for d in proposed] == [{"seed": 0}, {"seed": 1}, {"candidate_id": "cand_old"}, {}]


PURE = {"evaluator", "evolution"}
IMPURE = {
    "os",
    "time",
    "pathlib",
    "io",
    "socket",
    "subprocess",
    "threading",
    "asyncio",
    "datetime",
    "secrets",
    "tempfile",
    "uuid",
}


@pytest.mark.parametrize("path", sorted(Path("evolution").glob("*.py")), ids=lambda path: path.name)
def test_the_search_is_pure(path: Path) -> None:
    """Standard library and `evaluator.types`/`.schema` alone; no clock, no input or output, no global randomness."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            assert node.module != "random" or [alias.name for alias in node.names] == ["Random"]
        for name in names:
            top = name.split(".")[0]
            assert top not in IMPURE
            assert top in PURE or top in sys.stdlib_module_names
            assert top != "evaluator" or name in ("evaluator.types", "evaluator.schema")
            assert name != "random" or isinstance(node, ast.ImportFrom)
        assert not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "print", "eval", "exec")
        )


def test_a_repaired_kernel_breeds_once_it_is_as_fast_as_the_baseline() -> None:
    slow, fast = elite(1, 0.7, repaired=True), elite(2, 1.1, repaired=True)
    written = elite(3, 0.6)
    assert breeding_elites((slow, fast, written), 0, Random(0)) == [fast, written]
    assert breeding_elites((slow,), 0, Random(0)) == []
