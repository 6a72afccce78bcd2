"""Derive rows from the Candidates within the database: Proposals, Evaluations, Jobs, events, counters."""

from __future__ import annotations

import json

from bench.seed.load import Loader
from bench.seed.rows import EVENTS_BEFORE, GUIDE
from evaluator.schema import to_json
from evaluator.types import (
    BaselineTime,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Measurement,
    Ratio,
    Stage,
    Verdict,
)

_HASH = "@HASH@"
_DEVICE = Device(kind=DeviceKind.CUDA, name="NVIDIA H200", uuid="gpu-0", facts={"sm": 132, "memory_gib": 139})
_ENVIRONMENT = Environment(python="3.12", torch="2.11", triton="3.6", cuda="13.0", driver="580.95")


def fill_derived(loader: Loader) -> None:
    """Fill the tables that depend on `candidates` and `runs`."""
    _proposals(loader)
    _evaluations(loader)
    _jobs(loader)
    _events(loader)
    _arms(loader)
    _tallies(loader)


def _proposals(loader: Loader) -> None:
    arm = {"proposer": "c.proposer", "operator": "c.operator", "model": "c.model", "variant": "c.variant"}
    common = {
        **arm,
        "run_id": "c.run_id",
        "island": "c.island",
        "parents": "c.parents",
        "hint": "'{}'",
        "created_at": "c.created_at",
        "settled_at": "c.created_at",
        "prompt_parts": f"CASE WHEN c.proposer = 'model' THEN '[\"{GUIDE}\"]' ELSE '[]' END",
        "answered_by": "c.model",
        "input_tokens": "CASE WHEN c.proposer = 'model' THEN 1500 ELSE 0 END",
        "output_tokens": "CASE WHEN c.proposer = 'model' THEN 600 ELSE 0 END",
        "usd": "CASE WHEN c.proposer = 'model' THEN 0.008 ELSE 0.0 END",
        "duration_s": "CASE WHEN c.proposer = 'model' THEN 14.5 ELSE 0.4 END",
    }
    made = {
        "id": "c.proposal_id",
        "number": "c.number - 1",
        "arm_number": "c.number",
        "outcome": "CASE WHEN c.verdict IS NULL THEN 'duplicate' ELSE 'candidate' END",
        "candidate_id": "c.id",
        "reply_parts": "CASE WHEN c.proposer = 'model' THEN '[\"' || c.hash || '\"]' ELSE '[]' END",
    }
    lost = {
        "id": "'prop_' || substr(c.id, 6, 25) || 'z'",
        "number": "r.candidates + c.number / 10 - 1",
        "arm_number": "r.candidates + c.number",
        "outcome": "'malformed'",
        "detail": "'no code block in the reply'",
    }
    loader.derive("proposals", {**common, **made}, "candidates c")
    loader.derive(
        "proposals", {**common, **lost}, "candidates c JOIN runs r ON r.id = c.run_id WHERE c.number % 10 = 0"
    )


def _body(verdict: Verdict, stage: Stage) -> str:
    """Return the JSON of an Evaluation, with marks where it differs between Candidates."""

    def time(mode: str, workload: str, us: float) -> BaselineTime:
        interval = Interval(low=us * 0.99, high=us * 1.01)
        return BaselineTime(mode=mode, workload=workload, clock=Clock.GRAPH, median_us=us, interval_us=interval)

    passed = verdict is Verdict.PASSED
    measurements = tuple(
        Measurement(
            workload=workload,
            clock=Clock.GRAPH,
            samples_us=(20.5,),
            median_us=20.5,
            interval_us=Interval(low=20.3, high=20.7),
            baselines=(time("eager", workload, 55.5), time("compile", workload, 28.25)),
            floor_us=11.5,
            diagnostics={"kernel_only_us": 18.5, "rounds": [8, 16, 32]},
        )
        for workload in ("decode", "prefill")
    )
    speedups = (
        Ratio(against="fastest", value=4097.5, interval=Interval(low=4096.5, high=4098.5)),
        Ratio(against="eager", value=9.5, interval=Interval(low=9.0, high=10.0)),
    )
    evaluation = Evaluation(
        verdict=verdict,
        stage=stage,
        reason="@REASON@",
        problem_hash="0" * 64,
        candidate_hash=_HASH,
        evidence={"seeds": 8, "worst": {"index": [3, 17], "error": 0.25}, "promote": stage is Stage.CONFIRM},
        measurements=measurements if passed else (),
        speedups=speedups if passed else (),
        device=_DEVICE,
        environment=_ENVIRONMENT,
        resources={"registers": 64, "shared_bytes": 16384, "spills": 0, "occupancy": 0.75},
        duration_s={"screen": 0.01, "build": 0.4, "correctness": 0.5, "timing": 0.6} if passed else {"build": 0.4},
    )  # fmt: skip
    return json.dumps(to_json(evaluation))


def _evaluations(loader: Loader) -> None:
    told = "replace(replace({}, '@HASH@', c.hash), '@REASON@', replace(c.reason, '\"', ''))"
    speeds = f"replace(replace(replace({told.format(':passed:')}, '4097.5', CAST(c.speedup AS TEXT)), "
    speeds += "'4096.5', CAST(c.speedup_low AS TEXT)), '4098.5', CAST(c.speedup_high AS TEXT))"
    failed = (
        f"replace(replace({told.format(':failed:')}, 'BUILD_ERROR', c.verdict), '\"screen\"', '\"' || c.stage || '\"')"
    )
    common = {
        "candidate_id": "c.id",
        "run_id": "c.run_id",
        "device_name": "'NVIDIA H200'",
        "environment_key": f"'{_ENVIRONMENT.key}'",
        "schema_version": "1",
        "created_at": "c.created_at",
        "settled_at": "c.created_at",
        "reason": "c.reason",
        "verdict": "c.verdict",
    }
    judged = {
        "id": "'eval_' || substr(c.id, 6)",
        "ordinal": "1",
        "kind": "'judge'",
        "state": "CASE WHEN c.verdict IS NULL THEN 'duplicate' ELSE 'settled' END",
        "stage": "c.stage",
        "body": f"CASE WHEN c.verdict IS NULL THEN NULL WHEN c.verdict = 'PASSED' THEN {speeds} ELSE {failed} END",
        "device_s": "CASE WHEN c.verdict = 'PASSED' THEN 1.5 ELSE 0.4 END",
    }
    values = {
        "passed": _body(Verdict.PASSED, Stage.INTEGRITY),
        "failed": _body(Verdict.BUILD_ERROR, Stage.SCREEN),
    }
    loader.derive("evaluations", {**common, **judged}, "candidates c", values)
    confirmed = {
        "id": "'eval_' || substr(c.id, 6, 25) || 'z'",
        "ordinal": "2",
        "kind": "'confirm'",
        "state": "'settled'",
        "stage": "'confirm'",
        "body": speeds,
        "device_s": "9.5",
    }
    loader.derive(
        "evaluations",
        {**common, **confirmed},
        "candidates c WHERE c.confirmed",
        {"passed": _body(Verdict.PASSED, Stage.CONFIRM)},
    )


def _jobs(loader: Loader) -> None:
    """Make four for each Candidate, all done, as a table of Jobs has after a year."""
    for kind, queue, subject in (
        ("propose", "'propose'", "c.proposal_id"),
        ("build", "'build'", "'eval_' || substr(c.id, 6)"),
        ("judge", "CASE WHEN r.device_kind = 'cpu' THEN 'cpu' ELSE 'gpu.cuda' END", "'eval_' || substr(c.id, 6)"),
        ("advance", "'control'", "c.run_id"),
    ):
        columns = {
            "id": f"'job_' || substr(c.id, 6, 25) || '{kind[0]}'",
            "kind": f"'{kind}'",
            "queue": queue,
            "run_id": "c.run_id",
            "subject_id": subject,
            "ordinal": "c.number" if kind == "advance" else "1",
            "project_id": "r.project_id",
            "state": "'done'",
            "attempts": "1",
            "worker": "'worker-7:4711'",
            "nudged_at": "c.created_at",
            "created_at": "c.created_at",
            "claimed_at": "c.created_at",
            "done_at": "c.created_at",
        }
        loader.derive("jobs", columns, "candidates c JOIN runs r ON r.id = c.run_id")


def _events(loader: Loader) -> None:
    def derive(kind: str, seq: str, data: str, source: str) -> None:
        columns = {"run_id": "r.id", "seq": seq, "kind": f"'{kind}'", "data": data, "created_at": "r.created_at"}
        if "candidates c" in source:
            columns |= {"created_at": "c.created_at"}
        loader.derive("events", columns, source)

    each = "candidates c JOIN runs r ON r.id = c.run_id"
    who = '\'"candidate_id": "\' || c.id || \'", "number": \' || c.number'
    derive("run.created", "1", "'{\"problem_id\": \"' || r.problem_id || '\"}'", "runs r")
    derive("problem.admitted", "2", "'{\"cached\": true}'", "runs r")
    derive("run.status", "3", '\'{"status": "running"}\'', "runs r")
    first = f"{EVENTS_BEFORE} + 4 * (c.number - 1) + "
    proposal = (
        '\'{"proposal_id": "\' || c.proposal_id || \'", "number": \' || c.number || \', "outcome": "candidate"}\''
    )
    derive("proposal.opened", first + "1", proposal, each)
    derive("candidate.created", first + "2", f"'{{' || {who} || '}}'", each)
    derive("proposal.settled", first + "3", proposal, each)
    verdict = "', \"verdict\": \"' || coalesce(c.verdict, 'DUPLICATE') || '\", \"speedup\": ' "
    verdict += "|| coalesce(CAST(c.speedup AS TEXT), 'null')"
    derive("evaluation.settled", first + "4", f"'{{' || {who} || {verdict} || '}}'", each)
    derive(
        "run.ended", "r.last_seq", "'{\"reason\": \"' || r.end_reason || '\"}'", "runs r WHERE r.end_reason IS NOT NULL"
    )


def _arms(loader: Loader) -> None:
    columns = {
        "run_id": "c.run_id",
        "proposer": "c.proposer",
        "operator": "c.operator",
        "model": "c.model",
        "variant": "c.variant",
        "asked": "count(*)",
        "settled": "count(*)",
        "candidates": "count(*)",
        "judged": "count(c.verdict)",
        "passed": "count(c.speedup)",
        "usd": "CASE WHEN c.proposer = 'model' THEN count(*) * 0.008 ELSE 0.0 END",
        "tokens": "CASE WHEN c.proposer = 'model' THEN count(*) * 2100 ELSE 0 END",
    }
    loader.derive("arm_stats", columns, "candidates c GROUP BY c.run_id, c.proposer, c.operator, c.model, c.variant")


def _tallies(loader: Loader) -> None:
    columns = {
        "run_id": "e.run_id",
        "kind": "CASE WHEN e.kind = 'confirm' THEN 'confirm' ELSE 'judge' END",
        "stage": "e.stage",
        "verdict": "e.verdict",
        "number": "count(*)",
        "device_s": "sum(e.device_s)",
    }
    source = "evaluations e WHERE e.state = 'settled' GROUP BY e.run_id, e.kind, e.stage, e.verdict"
    loader.derive("tallies", columns, source)
