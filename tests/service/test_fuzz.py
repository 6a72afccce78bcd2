"""Schemathesis over the whole API, with a key, every check on: no 5xx, no undocumented status, no wrong shape."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from db.engine import write_session
from db.repositories import evaluations, proposals
from db.transitions.access.keys import create_key
from evaluator.problem import read_problem
from runtime.settings import Settings
from service.app import create_app
from tests.db.world import World
from tests.service.conftest import PROBLEM, SOURCES
from tests.support.valkey import valkey

if TYPE_CHECKING:
    from tests.service.fuzzing import Fuzzer

ANYWHERE = PROBLEM.replace('"device": "cpu"', '"weight": 2.0')
"""Its Workloads are for every kind of device."""


@pytest.fixture
def fuzzer(settings: Settings, engine: Engine, world: World) -> Iterator[Fuzzer]:
    """A fuzzer of an application with a key and a broker, with a finished Run in it and one that waits.

    Schemathesis is imported here: every worker collects this file, and one of them runs it.
    """
    import schemathesis

    from tests.service.fuzzing import Fuzzer

    world.problem = read_problem(ANYWHERE, "softmax")
    run_id = world.start().id
    world.drain()
    world.start()
    run = world.run(run_id)
    with write_session(engine) as s:
        key = create_key(s, "default", name="fuzzer", scope="operator", created_by="test")[1]
        proposal = proposals.list(s, run_id)[0].id
        evaluation = evaluations.of_run(s, run_id)[0].id
    assert run.champion_id is not None
    known = {
        "runs": run.id,
        "run_id": run.id,
        "problems": run.problem_id,
        "problem_id": run.problem_id,
        "candidates": run.champion_id,
        "proposals": proposal,
        "project_id": "default",
        "evaluations": evaluation,
    }
    with valkey() as redis_url:
        fast = {"requests_per_s": 0.0, "wrong_keys_per_minute": 0.0}
        update = {"allowed_hosts": ("testserver",), "redis_url": redis_url, **fast}
        app = create_app(settings.model_copy(update=update), engine=engine, send_nudges=lambda queues: None)
        headers = {"Authorization": f"Bearer {key}"}
        yield Fuzzer(
            schema=schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=headers),
            headers=headers,
            known=known,
            meant={
                "source": ANYWHERE,
                "seed_sources": [SOURCES[0]],
                "seed_candidates": [run.champion_id],
                "proposers": ["synthesiser"],
                "sizes": [{"rows": 8}],
            },
        )


def _fuzz(fuzzer: Fuzzer, cases: int, *, thorough: bool) -> None:
    """About the same number of requests to every operation. Bodies at the edges take long to make: when thorough."""
    operations = fuzzer.operations()
    share = -(-cases // len(operations))
    for operation in operations:
        before = fuzzer.cases
        if thorough or not operation.body:
            fuzzer.boundaries(operation, share // 2)
        fuzzer.random(operation, share - (fuzzer.cases - before))
    wide = [operation for operation in operations if operation.body or len(operation.query) > 1]
    for operation in itertools.cycle(wide):  # where there was little to vary, others make up for it
        if fuzzer.cases >= cases:
            break
        fuzzer.random(operation, share)


def _report(fuzzer: Fuzzer) -> None:
    print(f"schemathesis: {fuzzer.cases} cases over {len(fuzzer.operations())} operations: {dict(fuzzer.statuses)}")


def test_a_hundred_requests_get_documented_answers(fuzzer: Fuzzer) -> None:
    _fuzz(fuzzer, 100, thorough=False)
    _report(fuzzer)
    assert fuzzer.cases >= 100
    assert fuzzer.statuses[200] > 50
    assert not [status for status in fuzzer.statuses if status >= 500]


@pytest.mark.soak
def test_five_thousand_requests_get_documented_answers(fuzzer: Fuzzer) -> None:
    _fuzz(fuzzer, 5000, thorough=True)
    _report(fuzzer)
    assert fuzzer.cases >= 5000
    assert not [status for status in fuzzer.statuses if status >= 500]
