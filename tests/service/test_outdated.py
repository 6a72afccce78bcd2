"""A speedup over a Baseline that a later one overtook is shown as an estimate, on pages, in the API and in files."""

from __future__ import annotations

import html
import re

import pytest
from sqlalchemy import Engine, select
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import candidates
from db.repositories.work import proposing
from db.tables.core import ProposalRow
from db.transitions.work.enqueue import end_run
from db.transitions.work.locks import lock_run
from evaluator.problem import read_problem
from evolution.types import Budget, EndReason, RunConfig, RunStatus
from service.agents.reading import judgement_of, state_of
from service.agents.words import line_of
from tests.db.late_world import LateWorld, overtake
from tests.db.world import baseline, from_list
from tests.service.conftest import PROBLEM, SOURCES

API = "/api/v1"


def words(client: TestClient, path: str) -> str:
    """The text of a page or file in one line, without tags."""
    response = client.get(path)
    assert response.status_code == 200, path
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.text)).split())


@pytest.fixture
def overtaken(engine: Engine) -> tuple[str, str]:
    """A Run without time for judging its only Candidate again, and that Candidate: 3.2x eager, 1.6x compile."""
    world = LateWorld(engine=engine, propose=from_list(SOURCES[0]), problem=read_problem(PROBLEM, "softmax"))
    run = world.start(Budget(candidates=2), RunConfig(in_flight=1))
    world.settle_baseline(world.take(JobKind.BASELINE), world.early())
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    with write_session(engine) as s:
        end_run(s, lock_run(s, run.id), RunStatus.FINISHED, EndReason.NO_IMPROVEMENT, "No time was left.")
    with read_session(engine) as s:
        return run.id, candidates.list(s, run.id)[0].id


def test_pages_call_it_an_estimate(client: TestClient, overtaken: tuple[str, str]) -> None:
    run_id, candidate_id = overtaken
    best = words(client, f"/runs/{run_id}")
    assert "~1.60×" in best
    assert "against the fastest baseline, by estimate: it was timed against a slower one" in best
    kernel = words(client, f"/candidates/{candidate_id}")
    assert "estimated, not confirmed" in kernel
    assert "by estimate: it was timed against eager, before the fastest one had compiled" in kernel
    assert "no longer the fastest baseline" in kernel
    for path in ("/runs", f"/runs/{run_id}/candidates", f"/compare?id={candidate_id}"):
        assert "estimated over a later baseline" in words(client, path), path
    for path in (f"/runs/{run_id}/archive", f"/runs/{run_id}/lineage"):
        assert "estimated" in words(client, path), path
    evidence = words(client, f"/candidates/{candidate_id}/evidence")
    assert "Against the fastest by then ~3.20×" in evidence


def test_the_api_marks_it(client: TestClient, overtaken: tuple[str, str]) -> None:
    _, candidate_id = overtaken
    one = client.get(f"{API}/candidates/{candidate_id}").json()
    assert (one["outdated"], one["speedup"]["value"]) == (True, 1.6)
    (row,) = client.get(f"{API}/runs").json()["items"]
    assert (row["outdated"], row["speedup"]["value"], row["confirmed"]) == (True, 1.6, False)


def test_its_file_says_so(client: TestClient, overtaken: tuple[str, str]) -> None:
    text = client.get(f"{API}/runs/{overtaken[0]}/download").text
    assert "estimated at 1.60 x the fastest baseline; it was judged once,\nagainst eager, before" in text
    assert "3.200 x against eager, no longer the fastest baseline" in text


def test_agents_are_told(client: TestClient, overtaken: tuple[str, str]) -> None:
    run_id, candidate_id = overtaken
    run, best = client.get(f"{API}/runs/{run_id}").json(), client.get(f"{API}/candidates/{candidate_id}").json()
    events = client.get(f"{API}/runs/{run_id}/events").json()["items"]
    state = state_of(run, events, [], best)
    every = client.get(f"{API}/candidates/{candidate_id}/evaluations").json()["items"]
    told = judgement_of(run, every[0], every, best)
    for speedup in (state.speedup, told.speedup):
        assert speedup is not None
        assert (speedup.value, speedup.outdated) == (1.6, True)
    assert "baselines timed: compile to beat; speedups so far are estimates over it" in state.recent
    line = line_of("evaluation.settled", {"number": 3, "verdict": "PASSED", "speedup": 1.6, "outdated": True})
    assert line == "candidate 3: PASSED, estimated at 1.60 times the fastest baseline"
    line = line_of("evaluation.settled", {"number": 3, "verdict": "PASSED", "speedup": 1.3, "promoted": False})
    assert line == "candidate 3: PASSED, 1.30 times the fastest baseline, not promoted"


def test_a_prompt_has_the_estimates_of_each_workload(engine: Engine, overtaken: tuple[str, str]) -> None:
    with write_session(engine) as s:
        proposal = s.scalars(select(ProposalRow).order_by(ProposalRow.number)).first()
        assert proposal is not None
        proposal.parents, proposal.operator = [overtaken[1]], "rewrite"
        work = proposing.propose_work(s, proposal.id, calls=0)
    (parent,) = work.parents
    assert parent.outdated
    assert {ratio.workload: ratio.value for ratio in parent.ratios} == {None: 1.6, "small": 1.6}
