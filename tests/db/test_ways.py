"""How a model wrote is kept with each Proposal and Candidate: slots of a block where there are blocks, edits, files."""

from __future__ import annotations

import itertools

from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.repositories import candidates, proposals
from db.transitions import problems, runs
from db.views.work import ProposeWork
from evaluator.types import DeviceKind
from evolution.arms import way_of
from evolution.types import SLOTS, Budget, RunConfig
from runtime.queues import QUEUES
from tests.db.world import World, candidate_result


def ways(engine: Engine, kind: DeviceKind) -> dict[str, str]:
    """Let a model write twelve kernels; return each one's way, by Proposal, and compare it with its Candidate's."""
    numbers = itertools.count()

    def propose(work: ProposeWork) -> object:
        return candidate_result(f"speed={1 + next(numbers) / 100}")

    world = World(engine, propose=propose)  # type: ignore[arg-type]
    with write_session(engine) as s:
        stored = problems.create_problem(s, "default", world.problem)
        config = RunConfig(proposers=("gpt",))
        run, _ = runs.create_run(s, "default", stored.id, kind, Budget(candidates=12), config)
    while (job := world.claim(*QUEUES)) is not None:
        world.work(job)
    with read_session(engine) as s:
        made = {one.candidate_id: way_of(one.arm) for one in proposals.list(s, run.id, limit=100) if one.candidate_id}
        seen = {one.id: one.way for one in candidates.list(s, run.id, limit=100)}
    assert seen == made
    return made


def test_a_model_on_a_gpu_is_asked_for_slots_too(engine: Engine) -> None:
    assert {SLOTS, "file"} <= set(ways(engine, DeviceKind.CUDA).values())


def test_a_model_on_a_cpu_is_not(engine: Engine) -> None:
    found = set(ways(engine, DeviceKind.CPU).values())
    assert "file" in found
    assert SLOTS not in found
