"""The archive's elites, and what a model is told of earlier answers."""

from __future__ import annotations

import re

from sqlalchemy import Engine

from db.engine import read_session
from db.queues import JobKind
from db.repositories import archive, candidates
from db.views.rows import CandidateView
from db.views.work import ConfirmWork, ProposalResult, ProposeWork
from evaluator.types import Candidate, Evaluation, Stage, Verdict
from evolution.types import Budget, RunConfig
from tests.db.world import World, candidate_result, passed


def speed(one: CandidateView) -> float:
    return one.speedup.value if one.speedup is not None else 0.0


DESIGN = 'TUNABLES = {{"A": [1, 2, 4]}}\nCONFIG = {{"A": {value}}}\n'


class Tunable(World):
    """Judges a design by its value."""

    def judge(self, c: Candidate) -> Evaluation:
        found = re.search(r'CONFIG = {"A": (\d)}', c.source)
        return passed(self.problem, c, 1.0 + int(found[1]) / 10) if found else super().judge(c)

    def confirm(self, item: ConfirmWork) -> Evaluation:
        return passed(self.problem, item.candidate, 1.4, stage=Stage.CONFIRM, promote=True)


def test_the_fastest_of_every_design_is_an_elite(engine: Engine) -> None:
    def propose(work: ProposeWork) -> ProposalResult:
        if work.arm.operator == "tune":
            return candidate_result(DESIGN.format(value=work.hint["configuration"]["A"]))
        fixed = ("# plain speed=1.25", DESIGN.format(value=1), Verdict.INCORRECT_VALUES)
        return candidate_result(fixed[work.arm_number]) if work.arm_number < len(fixed) else candidate_result("")

    world = Tunable(engine, propose=propose)
    run = world.start(Budget(candidates=7), RunConfig(proposers=("synthesiser",), in_flight=1))
    world.drain()
    with read_session(engine) as s:
        made = {one.id: one for one in candidates.list(s, run.id, limit=100)}
        found = archive.elites(s, run.id)
    tunable = {one.id for one in made.values() if one.configuration}
    fastest = max((made[id] for id in tunable), key=speed)
    assert len(tunable) > 1
    assert fastest.operator == "tune"
    assert [one.id for one in found] == [one.id for one in sorted(found, key=speed, reverse=True)]
    assert {one.id for one in found} & tunable == {fastest.id}
    assert {one.id for one in found} - tunable == {one.id for one in made.values() if one.speedup} - tunable


def test_who_is_asked_is_told_what_is_still_being_judged(engine: Engine) -> None:
    told: list[list[tuple[int, Verdict | None]]] = []

    def propose(work: ProposeWork) -> ProposalResult:
        told.append([(one.number, one.verdict) for one in work.approaches])
        return candidate_result(f"answer_{len(told)} speed=1.{len(told)}")

    world = World(engine, propose=propose)
    world.start(Budget(candidates=4), RunConfig(proposers=("model",), in_flight=3))
    world.work(world.take(JobKind.PROPOSE))  # its Candidate is to be built and judged
    while len(told) < 2:
        job = world.claim("propose")
        assert job is not None
        world.work(job)
    assert told == [[], [(1, None)]]
    world.drain()
    assert len(told) == 4
    assert Verdict.PASSED in {verdict for _, verdict in told[-1]}
