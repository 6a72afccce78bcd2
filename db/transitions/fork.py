"""Fork a Run: a new Run of the same Problem and device, seeded from another Run."""

from __future__ import annotations

import dataclasses

from sqlalchemy.orm import Session

from db.errors import Conflict
from db.queues import Nudge
from db.repositories import runs
from db.transitions.runs import create_run
from db.transitions.seeds import Heritage, inherited
from evolution.types import MAX_SEEDS, Budget, Run, RunConfig, RunKind


def fork_run(
    s: Session,
    run_id: str,
    budget: Budget,
    config: RunConfig | None = None,
    *,
    heritage: Heritage = Heritage.POPULATION,
    project_id: str | None = None,
) -> tuple[Run, list[Nudge]]:
    """Start a Run seeded with a Run's population or Champions. The parent may be live and does not change.

    Without `config` the parent's is used, without its own seeds. Raise NotFound; Conflict where the parent has no
    Candidates to give.
    """
    parent = runs.get(s, run_id, project_id=project_id)
    if config is None and parent.kind is RunKind.JUDGE:
        config = RunConfig()
    elif config is None:
        config = dataclasses.replace(parent.config, seed_sources=(), seed_candidates=())
    room = MAX_SEEDS - len(config.seed_sources) - len(config.seed_candidates)
    taken = inherited(s, run_id, heritage, most=max(0, room))
    if not taken:
        what = "a confirmed champion" if heritage is Heritage.CHAMPIONS else "a candidate that passed"
        raise Conflict(f"run {run_id} has no {heritage} to start from: it needs {what}")
    seeds = tuple(dict.fromkeys((*config.seed_candidates, *taken)))
    config = dataclasses.replace(config, seed_candidates=seeds)
    return create_run(
        s, parent.project_id, parent.problem_id, parent.device_kind, budget, config, forked_from=parent.id
    )
