"""The worker's loop on SQLite with a judge that misbehaves on request."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from db.engine import read_session, write_session
from db.origin import originating
from db.repositories import events, proposals
from db.repositories.work import devices
from db.transitions import runs
from db.transitions.work import jobs
from db.views.work import Call, ProposalResult
from evaluator.types import DeviceKind, Verdict
from evolution.types import EndReason, ProposalOutcome, RunStatus
from runtime.logs import configure_logging
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from tests.workers.conftest import Shop, drain
from workers.errors import JudgeFault
from workers.handlers import progress
from workers.loop import run_job, work
from workers.proposers import Proposers, Registered
from workers.proposers.base import Request, candidate
from workers.sweeper import tidy


def test_a_run_goes_from_admission_to_a_champion(shop: Shop) -> None:
    context = shop.context()
    run = shop.start("speed=1.1", "speed=1.5", "verdict=INCORRECT_VALUES", "speed=1.2")
    drain(context)
    ended = shop.run(run.id)
    assert ended.status is RunStatus.FINISHED
    assert ended.champion_id is not None
    champion = next(c for c in shop.candidates(run.id) if c.id == ended.champion_id)
    assert champion.speedup is not None
    assert champion.speedup.value == pytest.approx(1.5)
    verdicts = Counter(c.verdict for c in shop.candidates(run.id))
    assert verdicts == {Verdict.PASSED: 3, Verdict.INCORRECT_VALUES: 1}
    with read_session(context.engine) as s:
        assert [seen.device.name for seen in devices.list(s)] == ["Test CPU"]


def test_what_the_judge_is_doing_becomes_events_at_most_one_a_second_for_a_step(shop: Shop) -> None:
    context = shop.context()
    run = shop.start("speed=1.5")
    drain(context)
    with read_session(context.engine) as s:
        told = [one.data for one in events.after(s, run.id, 0, limit=1000) if one.kind == "run.progress"]
        assert events.doing(s, run.id) == "", "that is over"
    assert [one["text"] for one in told] == [
        "baseline eager on small",
        "confirming: correctness with new inputs",
        "confirming: processes 3 of 8 on a held-out workload (2 of 8 done)",
    ]
    assert told[-1]["stage"] == "confirm"


def test_a_database_that_takes_no_note_costs_the_note_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    context = shop.context()
    run = shop.start("speed=1.5")

    def refuse(*_: object) -> None:
        raise OperationalError("note", {}, Exception("locked"))

    monkeypatch.setattr(progress, "note_progress", refuse)
    drain(context)
    assert shop.run(run.id).champion_id is not None


@pytest.mark.parametrize("how", ["die", "garbage", "hang"])
def test_a_judge_that_fails_once_is_started_again_and_the_step_retried(shop: Shop, how: str) -> None:
    context = shop.context(judge_deadline_s=5.0)
    run = shop.start(f"speed=1.5 {how}")
    drain(context)
    assert shop.run(run.id).champion_id is not None
    asked = [line for line in shop.requests() if line.startswith("judge ")]
    assert len(asked) >= 2
    assert [c.verdict for c in shop.candidates(run.id)] == [Verdict.PASSED]


def test_a_judge_that_always_fails_costs_that_candidate_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_JUDGE_ONCE")
    context = shop.context()
    run = shop.start("speed=1.5 die", "speed=1.4")
    drain(context)
    by_source = {c.verdict: c for c in shop.candidates(run.id)}
    assert set(by_source) == {Verdict.INTERNAL_ERROR, Verdict.PASSED}
    assert "ended without an answer (status 11): a word before the end" in by_source[Verdict.INTERNAL_ERROR].reason
    assert shop.run(run.id).champion_id == by_source[Verdict.PASSED].id
    assert shop.requests().count("judge speed=1.5 die") == 3


def test_a_refused_reference_ends_the_run_with_the_reason(shop: Shop) -> None:
    context = shop.context()
    run = shop.start("speed=1.5", reference="class Model: ...  # refused")
    drain(context)
    ended = shop.run(run.id)
    assert ended.end_reason is EndReason.PROBLEM_REFUSED
    assert "zeros pass" in ended.message


def test_duplicate_nudges_on_many_workers_judge_everything_once(shop: Shop) -> None:
    contexts = [shop.context() for _ in range(4)]
    sources = [f"speed={1 + i / 100} sleep=0.01" for i in range(12)]
    run = shop.start(*sources, candidates=12)
    errors: list[BaseException] = []

    def serve(number: int) -> None:
        try:
            idle = 0
            while idle < 3 and not shop.run(run.id).status.ended:
                idle = (
                    0
                    if sum(work(contexts[number], q) for q in ("control", "propose", "build", "cpu", "cpu"))
                    else idle + 1
                )
                if idle:
                    threading.Event().wait(0.2)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    drain(contexts[0])
    assert not errors
    assert shop.run(run.id).status.ended
    asked = Counter(line for line in shop.requests() if line.startswith("judge "))
    first = [line for line in asked if asked[line] >= 1]
    assert len(first) == len(shop.candidates(run.id)) == 12
    with read_session(contexts[0].engine) as s:
        doubled = s.execute(
            text("SELECT candidate_id, kind, ordinal, count(*) FROM evaluations GROUP BY 1, 2, 3 HAVING count(*) > 1")
        ).all()
    assert not doubled


def test_one_worker_judges_and_builds_by_turns_with_one_judge(shop: Shop) -> None:
    context = shop.context()
    context.begin("cpu", "build")
    run = shop.start("speed=1.5", "speed=1.2")
    while sum(work(context, queue) for queue in ("control", "propose", "build")):  # a nudge for builds is one for all
        pass
    assert [c.verdict for c in shop.candidates(run.id)] == [Verdict.PASSED] * 2
    asked = [line for line in shop.requests() if line.startswith(("build ", "judge "))]
    assert asked == ["build speed=1.5", "judge speed=1.5", "build speed=1.2", "judge speed=1.2"]
    assert {context.queues_with(queue) for queue in ("cpu", "build")} == {("cpu", "build")}
    assert context.queues_with("control") == ("control",)
    with read_session(context.engine) as s:
        assert [seen.device.name for seen in devices.list(s)] == ["Test CPU"]


@pytest.mark.parametrize("how", ["another worker has it", "the run is cancelled"])
def test_a_lost_lease_drops_the_result_and_breaks_the_judge_off(shop: Shop, how: str) -> None:
    context = shop.context(heartbeat_s=0.05)
    run = shop.start("speed=1.5 sleep=60")
    for queue in ("control", "cpu", "control", "propose", "build"):
        work(context, queue)
    with write_session(context.engine) as s:
        job = jobs.claim(s, ["cpu"], "w", 5.0)
    assert job is not None
    assert job.kind == "judge"

    def rob() -> None:
        while not any(line.startswith("judge") for line in shop.requests()):
            threading.Event().wait(0.02)
        with write_session(context.engine) as s:
            if how == "the run is cancelled":
                runs.cancel_run(s, run.id)
            else:
                s.execute(text("UPDATE jobs SET lease = 'another' WHERE id = :id"), {"id": job.id})

    robber = threading.Thread(target=rob)
    robber.start()
    started = time.monotonic()
    run_job(context, job)
    robber.join(60)
    assert time.monotonic() - started < 60
    assert [c.verdict for c in shop.candidates(run.id)] == [None]


def test_a_worker_that_stops_claims_nothing(shop: Shop) -> None:
    context = shop.context()
    shop.start("speed=1.5")
    context.stopping.set()
    assert work(context, "control") == 0
    assert work(context, "cpu") == 0
    assert "admit " not in shop.requests()


def test_a_worker_that_stops_starts_no_judge_for_the_job_that_it_has(shop: Shop) -> None:
    context = shop.context()
    judge = context.judge(DeviceKind.CPU)
    judge.request("ping", deadline_s=30.0)
    context.stopping.set()
    judge.kill()
    with pytest.raises(JudgeFault, match="stopping worker"):
        judge.request("ping", deadline_s=30.0)
    assert judge.pid is None


def test_an_unknown_proposer_is_an_outcome_not_an_error(shop: Shop) -> None:
    context = shop.context(replay_dir=None)
    run = shop.start("speed=1.5")
    drain(context)
    assert shop.run(run.id).status.ended
    assert shop.candidates(run.id) == ()


class Paid:
    """Answers each time with another file, for half a dollar."""

    def __init__(self, settings: Settings) -> None:
        self._prices = itertools.count(1)

    def propose(self, request: Request) -> ProposalResult:
        assert request.granted(Call(input_tokens=9, output_tokens=9, least_output_tokens=1))
        answer = candidate(f"speed=0.{next(self._prices)}")
        return replace(answer, input_tokens=9, output_tokens=9, usd=0.5)


def test_an_answer_that_cannot_be_stored_is_charged_and_not_asked_for_again(shop: Shop) -> None:
    models = (ModelEndpoint(name="one", base_url="http://127.0.0.1:1/v1", model="m"),)
    context = shop.context(models=models)
    context.proposers = Proposers(context.settings, {"model": Registered(Paid)})
    with write_session(context.engine) as s:
        s.execute(text("CREATE TRIGGER full BEFORE INSERT ON candidates BEGIN SELECT RAISE(ABORT, 'no room'); END"))
    run = shop.start(candidates=3, proposers=("model",))
    drain(context)
    with read_session(context.engine) as s:
        settled = proposals.list(s, run.id)
    assert [(one.outcome, one.usd) for one in settled] == [(ProposalOutcome.MALFORMED, 0.5)] * 3
    assert "could not be stored: IntegrityError" in settled[0].detail
    assert shop.run(run.id).spend.usd == 1.5
    assert shop.run(run.id).end_reason is not EndReason.INTERNAL_ERROR


def test_every_line_of_the_log_says_for_which_request_run_and_candidate(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    context = shop.context()
    configure_logging("INFO", "json")
    try:
        with originating("req_0123456789abcdef"):
            run = shop.start("speed=1.5 die", "speed=1.2")
        drain(context)
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    finally:
        logging.getLogger().handlers[:] = handlers
        logging.getLogger().setLevel(level)
        structlog.reset_defaults()
    told = [line for line in lines if line["event"] in ("job.settled", "job.failed")]
    assert {line["request_id"] for line in told} == {"req_0123456789abcdef"}
    ids = {c.id for c in shop.candidates(run.id)}
    for kind in ("build", "judge", "confirm"):
        assert {line["candidate_id"] for line in told if line["kind"] == kind} <= ids
        assert {line["run_id"] for line in told if line["kind"] == kind} == {run.id}
    assert all("proposal_id" in line for line in told if line["kind"] == "propose")
    assert not [line for line in told if line["kind"] == "advance" and "candidate_id" in line]
    assert any(line["event"] == "job.failed" and line["candidate_id"] in ids for line in told)


def test_the_sweeper_drops_old_samples_unless_told_to_keep_all(shop: Shop) -> None:
    context = shop.context(sample_days=1e-9)
    shop.start("speed=1.5", "speed=1.2", "speed=1.1")
    drain(context)

    def samples() -> int:
        with read_session(context.engine) as s:
            return int(s.execute(text("SELECT count(*) FROM samples")).scalar_one())

    had, stop = samples(), threading.Event()
    tidy(shop.context(sample_days=0), stop)
    tidy(shop.context(sample_days=30), stop)
    assert samples() == had
    stop.set()
    tidy(context, stop)
    assert samples() == had
    stop.clear()
    tidy(context, stop)
    assert 0 < samples() < had
