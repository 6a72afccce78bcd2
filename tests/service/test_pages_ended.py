"""Pages of ended Runs: nothing is promised that will not come. HEAD, and the estimate in dollars."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import candidates, evaluations
from db.transitions.work import jobs
from db.transitions.work.enqueue import end_run
from db.transitions.work.locks import lock_run
from db.transitions.work.progress import note_progress
from evolution.types import EndReason, RunStatus
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from service.app import create_app
from service.pages.gates import _findings, flat
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM


def end(engine: Engine, run_id: str, status: RunStatus, reason: EndReason, message: str) -> None:
    with write_session(engine) as s:
        end_run(s, lock_run(s, run_id), status, reason, message)


def test_an_unjudged_candidate_of_an_ended_run_is_not_in_progress(
    client: TestClient, world: World, engine: Engine
) -> None:
    run = world.start()
    world.take(JobKind.JUDGE)
    assert "in progress" in client.get(f"/runs/{run.id}/candidates").text
    end(engine, run.id, RunStatus.FINISHED, EndReason.BUDGET, "The wall time of the budget is used up.")
    for tab in ("", "/candidates", "/lineage"):
        text = client.get(f"/runs/{run.id}{tab}").text
        assert "not judged" in text, tab
        assert "in progress" not in text, tab
    with read_session(engine) as s:
        candidate = next(one for one in candidates.list(s, run.id) if one.verdict is None)
    for tab in ("", "/evidence"):
        text = client.get(f"/candidates/{candidate.id}{tab}").text
        assert "the run ended first." in text.lower(), tab


def test_a_page_says_what_the_judge_is_doing_and_why_nothing_was_promoted(
    client: TestClient, world: World, engine: Engine
) -> None:
    world.promote = lambda work, speedup: False
    run = world.start()
    job = world.take(JobKind.JUDGE)
    with write_session(engine) as s:
        note_progress(s, job, {"stage": "wait", "text": "waiting for the <device>"})
    assert "Now: waiting for the &lt;device&gt;." in client.get(f"/runs/{run.id}").text
    world.work(job)
    assert "Now:" not in client.get(f"/runs/{run.id}").text, "its result is there"
    world.drain()
    with write_session(engine) as s:
        note_progress(s, job, {"stage": "wait", "text": "too late"})
    text = client.get(f"/runs/{run.id}").text
    assert "too late" not in text
    assert "it is slower on small at 0.840x" in text
    with read_session(engine) as s:
        refused = next(
            one for one in candidates.list(s, run.id) if one.speedup is not None and one.speedup.value == 2.4
        )
    for tab in ("", "/evidence"):
        assert "not promoted: it is slower on small at 0.840x" in client.get(f"/candidates/{refused.id}{tab}").text
    assert "has not been confirmed" not in client.get(f"/candidates/{refused.id}").text


def test_a_lost_worker_of_an_ended_run_is_no_internal_error(world: World, engine: Engine) -> None:
    run = world.start()
    job = world.take(JobKind.JUDGE)
    end(engine, run.id, RunStatus.FINISHED, EndReason.BUDGET, "The wall time of the budget is used up.")
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=1)
        jobs.sweep(s)
    with read_session(engine) as s:
        record = evaluations.get(s, job.subject_id)
        candidate = candidates.get(s, record.candidate_id)
    assert record.state == "cancelled"
    assert candidate.verdict is None


def test_a_failed_run_shows_its_reason_and_no_empty_funnel(client: TestClient, world: World, engine: Engine) -> None:
    run = world.start()
    assert "From proposal to champion" in client.get(f"/runs/{run.id}").text
    end(engine, run.id, RunStatus.FAILED, EndReason.INTERNAL_ERROR, "The reference could not be tried: no memory")
    text = html.unescape(client.get(f"/runs/{run.id}").text)
    assert "The reference could not be tried: no memory" in text
    assert "From proposal to champion" not in text
    for tab in ("", "/candidates", "/lineage", "/credit", "/archive"):
        assert " yet" not in client.get(f"/runs/{run.id}{tab}").text, tab


@pytest.mark.parametrize("path", ["/", "/runs", "/fleet", "/submit"])
def test_pages_answer_head_without_a_body(client: TestClient, path: str) -> None:
    response = client.head(path)
    assert (response.status_code, response.content) == (200, b"")


def test_dollars_are_unknown_where_a_model_is_asked_for_the_first_time(
    settings: Settings, engine: Engine, finished: str
) -> None:
    model = ModelEndpoint(name="big", base_url="http://127.0.0.1:1/v1", model="big")
    app = create_app(settings.model_copy(update={"models": (model,)}), engine=engine, send_nudges=lambda _: True)
    form = {"name": "mine", "source": PROBLEM, "device": "cpu", "candidates": "5"}
    with TestClient(app, base_url=BASE_URL) as client:
        for proposers, dollars in (
            ({"proposers": "big"}, "unknown: earlier runs here paid for no model"),
            ({}, "unknown: earlier runs here paid for no model"),
            ({"proposers": "synthesiser"}, "none"),
        ):
            text = client.post("/submit/check", data={**form, **proposers}).text
            assert f"<dt>Dollars</dt><dd>{dollars}</dd>" in text, proposers
        empty = client.get("/submit").text
        assert 'name="proposers" value="model"' in empty
        assert 'value="big"' not in empty, "the only model is offered once"


def test_the_form_names_required_fields_and_what_a_limit_does(client: TestClient) -> None:
    text = client.get("/submit").text
    assert "Name (required)" in text
    assert "for example rmsnorm_residual" in text
    assert "work already in flight is finished and counted" in text


def test_findings_are_counted_and_a_resource_report_is_rows() -> None:
    calls = {f"kind {n}": n for n in range(1, 9)}
    ((name, text),) = _findings({"correctness": {"checked_calls": calls}})
    assert (name, text.partition(" (")[0]) == ("Checked calls", "36, on kind 8")
    assert text.endswith("kind 3 (3), and 2 more kinds")
    found = dict(
        flat({"kernel": {"registers": 32, "share": 0.123456}, "libraries": ["a", "b"], "note": "", "none": []})
    )
    assert found == {"kernel, registers": "32", "kernel, share": "0.1235", "libraries": "a, b"}
