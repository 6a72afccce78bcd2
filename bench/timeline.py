"""The course of one run, read from the database of its data folder.

Plain SQLite on columns that every version has, so that the folder of an older checkout is read, too.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DEVICE_KINDS = ("admit", "baseline", "judge", "confirm")
_TIMES = ("created_at", "claimed_at", "done_at", "settled_at", "started_at", "ended_at")


def read_timeline(database: Path) -> dict[str, Any]:
    """Return the figures of the newest run in a database; {} if there is none."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        runs = _rows(base, "SELECT * FROM runs ORDER BY created_at DESC LIMIT 1")
        if not runs:
            return {}
        run = runs[0]
        of_run = (run["id"],)
        events = _rows(base, "SELECT * FROM events WHERE run_id = ? ORDER BY seq", of_run)
        jobs = _rows(
            base,
            "SELECT * FROM jobs WHERE run_id = ? OR (run_id IS NULL AND kind IN ('admit', 'baseline')"
            " AND done_at > ?) ORDER BY claimed_at",
            (run["id"], run["created_at"].astimezone(UTC).replace(tzinfo=None).isoformat(" ")),
        )
        evaluations = _rows(base, "SELECT * FROM evaluations WHERE run_id = ? ORDER BY settled_at", of_run)
    return describe(run, events, jobs, evaluations)


def describe(
    run: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    jobs: Sequence[Mapping[str, Any]],
    evaluations: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return a run's figures; seconds are since its POST unless the name says otherwise.

    The search lasts from its first decision to the run's end. `held` is the share of it in which a job of a kind held
    the device; `judging` joins judgements and confirmations.
    """
    posted, last = run["created_at"], run["ended_at"] or max(event["created_at"] for event in events)

    def since(moment: datetime | None) -> float | None:
        return None if moment is None else round((moment - posted).total_seconds(), 2)

    first = {kind: next((e["created_at"] for e in events if e["kind"] == kind), None) for kind in _MILESTONES}
    verdicts = [e for e in events if e["kind"] == "evaluation.settled" and e["data"].get("kind") == "judge"]
    began = first["search.decided"]
    search_s = (last - began).total_seconds() if began else 0.0
    judged = {job["subject_id"] for job in jobs if job["kind"] == "judge"}
    ended = Counter(
        how_ended(one) for one in evaluations if one["kind"] == "judge" and one["state"] in ("settled", "duplicate")
    )
    on_device = Counter(how_ended(one) for one in evaluations if one["id"] in judged and one["state"] == "settled")
    confirmations = [
        {**_confirmation(one), "seconds": _seconds(job, last)}
        for job in jobs
        for one in evaluations
        if job["kind"] == "confirm" and job["claimed_at"] and one["id"] == job["subject_id"]
    ]
    return {
        "first_verdict_s": since(verdicts[0]["created_at"]) if verdicts else None,
        "milestones_s": {_MILESTONES[kind]: since(moment) for kind, moment in first.items() if moment is not None},
        "search_s": round(search_s, 2),
        "judged": sum(on_device.values()),
        "judged_a_minute": round(60 * sum(on_device.values()) / search_s, 2) if search_s else None,
        "ended": dict(ended.most_common()),
        "refused": [
            _refusal(one)
            for one in evaluations
            if one["kind"] == "judge" and one["state"] == "settled" and one["verdict"] != "PASSED"
        ],
        "held": {
            **{kind: _held([job for job in jobs if job["kind"] == kind], began, last) for kind in DEVICE_KINDS},
            "judging": _held([job for job in jobs if job["kind"] in ("judge", "confirm")], began, last),
            "any": _held([job for job in jobs if job["kind"] in DEVICE_KINDS], began, last),
        },
        "job_s": {kind: _durations(jobs, kind, last) for kind in (*DEVICE_KINDS, "build", "propose")},
        "stage_s": _stages(evaluations),
        "confirmations": confirmations,
        "total_s": since(last),
        "status": run["status"],
        "end_reason": run["end_reason"],
        "message": run["message"],
        "champion": _champion(run, events),
        "device": next((one["device_name"] for one in evaluations if one["device_name"]), None),
    }  # fmt: skip


_MILESTONES = {
    "problem.admitted": "admitted",
    "baseline.timed": "baselines",
    "search.decided": "first_decision",
    "candidate.created": "first_candidate",
    "candidate.confirming": "first_confirmation",
    "champion.promoted": "champion",
}


def how_ended(evaluation: Mapping[str, Any]) -> str:
    """Return the end of a judgement in a word or two: a verdict, and for a right kernel its speed."""
    if evaluation["state"] == "duplicate":
        return "duplicate"
    verdict, stage = evaluation["verdict"], evaluation["stage"]
    if verdict != "PASSED":
        return f"{verdict} ({stage})"
    ratio = _ratio(evaluation["body"] or {})
    if ratio is None:
        return "PASSED, not timed"
    low, high = ratio["interval"]["low"], ratio["interval"]["high"]
    return f"PASSED, {'faster' if low > 1 else 'slower' if high < 1 else 'about equal'}"


def _ratio(body: Mapping[str, Any]) -> dict[str, Any] | None:
    ratios: Iterable[dict[str, Any]] = body.get("speedups") or ()
    return next((r for r in ratios if r["against"] == "fastest" and r["workload"] is None), None)


def _refusal(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return why a judgement ended without a time: a synthesised kernel that is refused is a fault of ours."""
    evidence = (evaluation["body"] or {}).get("evidence") or {}
    found = {name: evidence[name] for name in ("check", "excess_us", "error", "log") if name in evidence}
    return {"verdict": evaluation["verdict"], "reason": evaluation["reason"], **found}


def _confirmation(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome of a confirmation: its decision with the numbers behind it, or the verdict that ended it."""
    body = evaluation["body"] or {}
    evidence, ratio = body.get("evidence") or {}, _ratio(body)
    return {
        "state": evaluation["state"],
        "verdict": evaluation["verdict"],
        "reason": evaluation["reason"],
        "promoted": evidence.get("promote"),
        "speedup": ratio["value"] if ratio else None,
        "decision": evidence.get("confirm"),
        "stage_s": body.get("duration_s"),
        "spent_s": evidence.get("seconds"),
    }


def _champion(run: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the run's own last champion: its ratio over the fastest baseline and the lower end of its interval."""
    said = [event["data"] for event in events if event["kind"] == "champion.promoted"]
    return {"speedup": said[-1]["speedup"], "low": said[-1]["low"]} if said and run["champion_id"] else None


def _seconds(job: Mapping[str, Any], last: datetime) -> float:
    start: datetime = job["claimed_at"]
    return round(((job["done_at"] or last) - start).total_seconds(), 2)


def _durations(jobs: Sequence[Mapping[str, Any]], kind: str, last: datetime) -> list[float]:
    return [_seconds(job, last) for job in jobs if job["kind"] == kind and job["claimed_at"]]


def _held(jobs: Sequence[Mapping[str, Any]], began: datetime | None, last: datetime) -> float | None:
    """Return the share of the search that the union of these jobs' claims covers."""
    if began is None or last <= began:
        return None
    spans = sorted(
        (max(job["claimed_at"], began), min(job["done_at"] or last, last)) for job in jobs if job["claimed_at"]
    )
    covered, reached = 0.0, began
    for start, end in spans:
        if end > max(start, reached):
            covered += (end - max(start, reached)).total_seconds()
            reached = end
    return round(covered / (last - began).total_seconds(), 3)


def _stages(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the seconds of each stage of all judgements together."""
    total: Counter[str] = Counter()
    for one in evaluations:
        if one["kind"] == "judge":
            total.update((one["body"] or {}).get("duration_s") or {})
    return {stage: round(seconds, 2) for stage, seconds in total.items()}


def _rows(base: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
    return [_row(dict(row)) for row in base.execute(query, values)]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    for name in _TIMES:
        if row.get(name):
            row[name] = datetime.fromisoformat(row[name]).replace(tzinfo=UTC)
    for name in ("data", "body"):
        if isinstance(row.get(name), str):
            row[name] = json.loads(row[name])
    return row
