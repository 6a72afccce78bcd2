"""A Run in memory: carries out decisions with made-up outcomes, to watch the search without a database."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from evaluator.types import Language, Verdict
from evolution.arms import SEED, TUNER
from evolution.bandit import judged_reward
from evolution.search import decide
from evolution.state import ArmStats, Broken, Elite, Family, SearchState, StandingChampion
from evolution.tunables import key_of
from evolution.types import Arm, Budget, Confirm, Decision, Finish, Propose, Retime, RunConfig, Spend

TUNABLES = {"BLOCK": (1, 2, 4), "UNROLL": (1, 2)}


@dataclass
class Simulation:
    """Steady state: one thing in flight finishes at a time, in an order that `rng` draws."""

    budget: Budget
    config: RunConfig
    rng: Random
    quality: dict[str, float] = field(default_factory=dict)
    limit: dict[str, int] = field(default_factory=dict)
    usd: float = 0.0
    tokens: int = 0
    judge_s: float = 1.0
    overtakes: int = 0
    spend: Spend = field(default_factory=Spend)
    flight: list[Decision] = field(default_factory=list)
    elites: dict[str, Elite] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    arms: dict[Arm, ArmStats] = field(default_factory=dict)
    tried: dict[str, set[str]] = field(default_factory=dict)
    tunable: dict[str, tuple[str, float]] = field(default_factory=dict)
    champion: StandingChampion | None = None
    since_best: int = 0
    judged: int = 0
    candidates: int = 0
    decisions: int = 0
    log: list[Decision] = field(default_factory=list)

    def state(self) -> SearchState:
        return SearchState(
            config=self.config,
            budget=self.budget,
            spend=self.spend,
            open_proposals=sum(isinstance(d, Propose) for d in self.flight),
            open_judgements=sum(isinstance(d, Retime) for d in self.flight),
            open_confirms=sum(isinstance(d, Confirm) for d in self.flight),
            elites=tuple(self.elites.values()),
            broken=tuple(self.broken[::-1][:8]),
            arms=tuple(self.arms.values()),
            families=self._families(),
            champion=self.champion,
            since_best=self.since_best,
            judged_any=self.candidates > 0,
            judge_s=self.judge_s if self.judged else 0.0,
            baseline="compile (20 us on small)",
        )

    def run(self, most: int = 5000) -> Finish:
        """To the end. Raises AssertionError where the search does something that it may not, or never ends."""
        for _ in range(most):
            state = self.state()
            found = decide(state, Random(self.decisions))
            assert found == decide(state, Random(self.decisions)), "the same state and seed gave other decisions"
            self.decisions += 1
            self.log += found
            if any(isinstance(d, Finish) for d in found):
                assert len(found) == 1
                return found[0]
            check(state, found)
            for decision in found:
                self._start(decision)
            assert self.flight, "nothing is in flight and the search did not end"
            self._settle(self.flight.pop(self.rng.randrange(len(self.flight))))
            if self.overtakes and self.elites and self.rng.random() < 0.1:
                self._overtake()
        raise AssertionError("the search never ended")

    def _overtake(self) -> None:
        """Make speedups estimates over a later Baseline, but those that were confirmed."""
        self.overtakes -= 1
        for key, elite in self.elites.items():
            if not elite.confirms:
                scaled = {"speedup": elite.speedup * 0.8, "low": elite.low * 0.8}
                self.elites[key] = replace(elite, **scaled, outdated=True, retimed=False)

    def _start(self, decision: Decision) -> None:
        self.flight.append(decision)
        if isinstance(decision, Retime):
            key, elite = self._elite(decision.candidate_id)
            self.elites[key] = replace(elite, retimed=True)
        if isinstance(decision, Propose):
            self._spend(candidates=1)
            stats = self.arms.get(decision.arm, ArmStats(arm=decision.arm))
            self.arms[decision.arm] = replace(stats, asked=stats.asked + 1)
            if decision.arm == TUNER:
                key = key_of(decision.hint["configuration"])
                assert key not in self.tried.get(decision.hint["family"], set()), "a Configuration was asked for twice"
                self.tried.setdefault(decision.hint["family"], set()).add(key)

    def _elite(self, candidate_id: str) -> tuple[str, Elite]:
        return next((key, one) for key, one in self.elites.items() if one.candidate_id == candidate_id)

    def _families(self) -> tuple[Family, ...]:
        return tuple(
            Family(
                family=family,
                candidate_id=name,
                island=self.elites[family].island,
                tunables=TUNABLES,
                seen=(({"BLOCK": 2, "UNROLL": 1}, speedup),),
                tried=frozenset(self.tried.get(family, ())),
            )
            for family, (name, speedup) in self.tunable.items()
        )

    def _spend(self, **more: float) -> None:
        self.spend = replace(self.spend, **{name: getattr(self.spend, name) + value for name, value in more.items()})

    def _settle(self, decision: Decision) -> None:
        if isinstance(decision, Propose):
            self._proposed(decision)
        elif isinstance(decision, Retime):
            self._spend(device_s=self.judge_s, wall_s=self.judge_s)
            for key, elite in self.elites.items():
                if elite.candidate_id == decision.candidate_id:
                    self.elites[key] = replace(elite, outdated=False, retimed=False)
        elif isinstance(decision, Confirm):
            elite = next((e for e in self.elites.values() if e.candidate_id == decision.candidate_id), None)
            cost = self.judge_s * 4
            self._spend(device_s=cost, wall_s=cost)
            if elite is None:
                return
            key = next(key for key, one in self.elites.items() if one is elite)
            good = elite.speedup > 1.01
            self.elites[key] = replace(elite, confirms=elite.confirms + 1, confirmed=good, outdated=False)
            if good:
                self.champion = StandingChampion(
                    candidate_id=elite.candidate_id, hash=elite.hash, speedup=elite.speedup, own=True
                )

    def _proposed(self, decision: Propose) -> None:
        stats = self.arms[decision.arm]
        paid = decision.arm not in (SEED, TUNER) and decision.arm.proposer.startswith("model")
        usd, tokens = (self.usd, self.tokens) if paid else (0.0, 0)
        self._spend(usd=usd, tokens=tokens, wall_s=self.judge_s)
        if stats.settled >= self.limit.get(decision.arm.proposer, 10_000):
            self.arms[decision.arm] = replace(stats, settled=stats.settled + 1, exhausted=True)
            self._spend(candidates=-1)
            return
        self.candidates += 1
        self.judged += 1
        self._spend(device_s=self.judge_s)
        mean = self.quality.get(decision.arm.proposer, 1.0)
        speedup = mean * self.rng.lognormvariate(0, 0.3)
        best = max((e.speedup for e in self.elites.values()), default=None)
        passed = self.rng.random() < 0.7
        reward = judged_reward(speedup, best) if passed else 0.0
        self.arms[decision.arm] = replace(
            stats,
            settled=stats.settled + 1,
            candidates=stats.candidates + 1,
            judged=stats.judged + 1,
            passed=stats.passed + passed,
            reward=stats.reward + reward,
            usd=stats.usd + usd,
            tokens=stats.tokens + tokens,
            device_s=stats.device_s + self.judge_s,
        )
        self.since_best = 0 if passed and speedup > (best or 0.0) * 1.01 else self.since_best + 1
        name = f"cand_{self.candidates}"
        if not passed:
            self.broken.append(Broken(candidate_id=name, island=decision.island, verdict=Verdict.BUILD_ERROR))
            return
        drawn = self.rng.choice("fgh") if self.rng.random() < 0.3 else name
        key = str(decision.hint.get("family", drawn))
        if key not in self.elites or self.elites[key].speedup < speedup:
            self.elites[key] = Elite(
                candidate_id=name,
                number=self.candidates,
                island=decision.island,
                language=Language.CPP,
                speedup=speedup,
                low=speedup * 0.97,
                hash=name,
            )
            if key in "fgh":
                self.tunable[key] = name, speedup


def check(state: SearchState, decisions: list[Decision]) -> None:
    """Every decision is legal in its state."""
    known = {e.candidate_id for e in state.elites} | {b.candidate_id for b in state.broken}
    known |= {family.candidate_id for family in state.families}
    opened = sum(isinstance(d, Propose) for d in decisions)
    assert state.in_flight + opened <= max(state.config.in_flight, state.in_flight)
    if state.budget.candidates is not None:
        assert state.spend.candidates + opened <= state.budget.candidates
    if opened and state.budget.usd is not None:
        paid = [d for d in decisions if isinstance(d, Propose) and d.arm.proposer.startswith("model")]
        assert not paid or state.spend.usd < state.budget.usd
    if decisions and state.budget.device_s is not None:
        assert state.spend.device_s < state.budget.device_s
    assert sum(isinstance(d, Confirm) for d in decisions) + state.open_confirms <= 1
    for decision in decisions:
        match decision:
            case Propose():
                assert 0 <= decision.island < state.config.islands
                homes = {family.family: family.island for family in state.families}
                assert decision.arm != TUNER or decision.island == homes[decision.hint["family"]]
                assert set(decision.parents) <= known
                assert decision.arm in (SEED, TUNER) or decision.arm.proposer in state.config.proposers
                stats = next((a for a in state.arms if a.arm == decision.arm), None)
                assert stats is None or not stats.exhausted
            case Retime():
                elite = next(e for e in state.elites if e.candidate_id == decision.candidate_id)
                assert elite.outdated
                assert not elite.retimed
                assert not decision.first or elite.speedup == max(e.speedup for e in state.elites)
            case Confirm():
                assert any(e.candidate_id == decision.candidate_id for e in state.elites)
