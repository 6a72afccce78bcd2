"""Run our search on a recorded landscape: `evolution.decide` as it is, with outcomes from the recording."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from bench.search.landscape import Kernel, Known, Landscape, Meter, Proposer
from bench.search.scripted import TOKENS_PER_S, Model, device_s, output_tokens, proposer_of
from evaluator.types import Language, Verdict
from evolution import bandit
from evolution.arms import TUNER, stats_of
from evolution.bandit import judged_reward, spent_s
from evolution.search import decide
from evolution.state import ArmStats, Broken, Elite, Family, SearchState, StandingChampion
from evolution.types import Arm, Budget, Confirm, Finish, Operator, Propose, RunConfig, Spend

CONFIRM_COST = 4


@dataclass
class Ours:
    """One Run, one thing at a time. `off` names a mechanism to leave out.

    `models` replace the one proposer, which is free; judging then takes its real time.
    """

    land: Landscape
    seed: int
    off: str = ""
    models: tuple[Model, ...] = ()
    elites: dict[str, Elite] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    arms: dict[Arm, ArmStats] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    compiled: dict[str, float] = field(default_factory=dict)
    champion: StandingChampion | None = None
    since_best: int = 0
    proposals: int = 0
    decisions: int = 0
    confirm_s: float = 0.0

    def __post_init__(self) -> None:
        self.rng = Random(f"ours/{self.seed}")
        self.meter = Meter(self.land, self.rng)
        self.proposer = Proposer(self.land, self.rng)
        self.known = Known(self.land)
        self.lanes = {model.name: (model, proposer_of(model, self.land, self.proposer)) for model in self.models}
        names = tuple(self.lanes) or ("model",)
        self.config = RunConfig(proposers=names, seed=self.seed, in_flight=1, stagnation_candidates=10**9)

    def run(self, most: int, least: int = 0) -> int | None:
        """Return the measurements until the goal, or None if `most` did not suffice. `least` proposals are made."""
        with _without(self.off):
            idle = 0
            while not self.meter.over(most, least) and idle < 500:
                found = decide(self._state(), Random(f"{self.seed}/{self.decisions}"))
                self.decisions += 1
                before = self.meter.count, self.meter.proposals
                for decision in found:
                    if isinstance(decision, Finish):
                        return self.meter.reached_at
                    self._do(decision)
                idle = 0 if (self.meter.count, self.meter.proposals) != before else idle + 1
        return self.meter.reached_at

    def _state(self) -> SearchState:
        return SearchState(
            config=self.config,
            budget=Budget(candidates=10**9),
            spend=Spend(),
            elites=tuple(sorted(self.elites.values(), key=lambda elite: elite.number)),
            broken=tuple(self.broken[::-1][:8]),
            arms=tuple(self.arms.values()),
            families=tuple(self._at_home(family) for family in self.known.families()),
            champion=self.champion,
            since_best=self.since_best,
            judged_any=True,
            judge_s=1.0,
        )

    def _at_home(self, family: Family) -> Family:
        elite = self.elites.get(family.family)
        return family if elite is None else dataclasses.replace(family, island=elite.island)

    def _do(self, decision: Propose | Confirm) -> None:
        if isinstance(decision, Propose):
            self._propose(decision)
            return
        found = [(design, e) for design, e in self.elites.items() if e.candidate_id == decision.candidate_id]
        if not found:  # a faster one took its place meanwhile; the work counts
            self._confirmed(self._kernel(decision.candidate_id))
            return
        [(design, elite)] = found
        kernel = self.land.kernels[elite.hash]
        self._confirmed(kernel)
        good = kernel.speedup > 1.01 * (self.champion.speedup if self.champion is not None else 1.0)
        self.elites[design] = dataclasses.replace(elite, confirms=elite.confirms + 1, confirmed=good)
        if good:
            self.champion = StandingChampion(
                candidate_id=elite.candidate_id, hash=elite.hash, speedup=kernel.speedup, own=True
            )

    def _confirmed(self, kernel: Kernel) -> None:
        self.meter.measure(kernel, CONFIRM_COST)
        self.confirm_s += CONFIRM_COST * self._seconds(kernel)

    def _seconds(self, kernel: Kernel) -> float:
        return device_s(kernel) if self.models else 1.0

    def _propose(self, decision: Propose) -> None:
        self.proposals += 1
        self.meter.propose()
        stats = self.arms.get(decision.arm, ArmStats(arm=decision.arm))
        self.arms[decision.arm] = dataclasses.replace(stats, asked=stats.asked + 1, settled=stats.settled + 1)
        parents = [self._kernel(id) for id in decision.parents]
        if decision.arm.operator is Operator.TUNE:
            wanted = decision.hint["configuration"]
            self.known.tried(parents[0].family, wanted)
            child = self.land.at(parents[0].family, wanted)
        else:
            answer = self._answer(decision.arm, parents)
            if answer is None:
                self.since_best += 1
                return
            child = answer
        slipped = child.origin is not None  # few were recorded: one drawn again stands for an unrecorded one
        if self.off != "novelty" and not slipped and (child.hash in self.seen or child.signature in self.compiled):
            # Refused before any device time: its text, or its compiled code, was judged before.
            self.seen.add(child.hash)
            if child.signature in self.compiled:
                self.known.add(f"{self.proposals:06d}/{child.hash}", child, self.compiled[child.signature])
            self.since_best += 1
            return
        self._judged(decision.arm, decision.island, child)

    def _answer(self, arm: Arm, parents: list[Kernel]) -> Kernel | None:
        """Return the reply of the chosen proposer, charged to the arm; None if it cannot be read."""
        if arm.proposer not in self.lanes:
            repair = arm.operator is Operator.REPAIR
            return self.proposer.propose(*parents, repair=repair) if parents else self.proposer.propose(None)
        model, proposer = self.lanes[arm.proposer]
        stats = self.arms[arm]
        self.arms[arm] = dataclasses.replace(
            stats,
            usd=stats.usd + model.usd(arm.operator),
            propose_s=stats.propose_s + output_tokens(arm.operator) / TOKENS_PER_S,
        )
        return model.reply(proposer, parents, arm.operator)

    @property
    def usd(self) -> float:
        """Return the Run's cost so far in dollars."""
        return sum(stats.usd for stats in self.arms.values())

    @property
    def cost_s(self) -> float:
        """Return the Run's cost so far as device-seconds (`evolution.bandit`), confirmations too."""
        return sum(spent_s(stats) for stats in self.arms.values()) + self.confirm_s

    def _kernel(self, candidate_id: str) -> Kernel:
        return self.land.kernels[candidate_id.split("/")[1]]

    def _judged(self, arm: Arm, island: int, child: Kernel) -> None:
        self.seen.add(child.hash)
        best = max((elite.speedup for elite in self.elites.values()), default=None)
        speedup = self.meter.measure(child)
        self.compiled[child.signature] = speedup
        self.since_best = 0 if speedup > (best or 0.0) * 1.01 else self.since_best + 1
        name = f"{self.proposals:06d}/{child.hash}"
        self.known.add(name, child, speedup)
        stats = self.arms.get(arm, ArmStats(arm=arm))
        reward = judged_reward(speedup, best) if child.passed else 0.0
        self.arms[arm] = dataclasses.replace(
            stats, candidates=stats.candidates + 1, judged=stats.judged + 1, passed=stats.passed + child.passed,
            reward=stats.reward + reward, device_s=stats.device_s + self._seconds(child),
        )  # fmt: skip
        if not child.passed:
            self.broken.append(Broken(candidate_id=name, island=island, verdict=Verdict.INCORRECT_VALUES))
            return
        if child.family not in self.elites or self.elites[child.family].speedup < speedup:
            self.elites[child.family] = Elite(
                candidate_id=name,
                number=self.proposals,
                island=island,
                language=Language(child.language),
                speedup=speedup,
                low=speedup * (1 - 2 * child.sigma),
                hash=child.hash,
            )


@contextmanager
def _without(off: str) -> Iterator[None]:
    """Return the search without one mechanism. "models": they are chosen in turn, operators as usual."""
    if off == "bandit":
        with patch.object(bandit, "choose", lambda arms, asked, rng: rng.randrange(len(arms))):
            yield
    elif off == "models":
        with patch.object(bandit, "choose_model", _in_turn):
            yield
    elif off == "tuning":
        with patch("evolution.search.stats_of", _untuned):
            yield
    else:
        yield


def _in_turn(arms: Sequence[ArmStats], chosen: Sequence[int], asked: dict[int, int], rng: Random) -> int:
    """Return, of the allowed arms, that of the model with the fewest requests."""
    times: Counter[str] = Counter()
    for index, stats in enumerate(arms):
        times[stats.arm.proposer] += stats.asked + asked.get(index, 0)
    return min(chosen, key=lambda index: (times[arms[index].arm.proposer], index))


def _untuned(state: SearchState) -> list[ArmStats]:
    return [stats for stats in stats_of(state) if stats.arm != TUNER]
