"""Answers of the REST API as results of the tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from db.engine import read_session
from db.repositories import memory, problems, runs
from evaluator.schema import from_json
from evaluator.types import DeviceKind, Evaluation, Language, Problem, Ratio
from prompts import Rules, describe_results, describe_rules
from prompts.redact import without_held_out
from service.agents.answers import Judgement, RunState, Speedup, Workload
from service.agents.words import line_of
from service.context import Context
from service.identity.principal import Principal

MOST_LESSONS = 20
_LEARNED_FROM = 10
"""Lessons are read from so many of a problem's newest runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The parts of a problem's description that the REST API does not have."""

    source: str
    rules: Rules
    lessons: tuple[str, ...]


def workloads_of(shown: dict[str, Any]) -> list[Workload]:
    """Return a problem's workloads, without those that are held out."""
    return [
        Workload(name=one["name"], sizes=one["sizes"], weight=one["weight"], device=one["device"])
        for one in shown["workloads"]
        if not one["held_out"]
    ]


async def known_problem(
    context: Context, who: Principal, problem_id: str, device_kind: DeviceKind, language: Language
) -> Known:
    """Return the rules and lessons of a problem that the caller may read."""

    def read() -> tuple[Problem, tuple[str, ...]]:
        with read_session(context.engine) as session:
            view = problems.get(session, problem_id, project_id=who.project_id)
            only = runs.Filter(problem_id=problem_id, device_kind=device_kind)
            newest = runs.list(session, who.project_id, limit=_LEARNED_FROM, only=only)
            lessons = [line for run in newest for line in memory.lessons_of(session, run.id)]
        return view.problem, tuple(dict.fromkeys(lessons))[:MOST_LESSONS]

    problem, lessons = await anyio.to_thread.run_sync(read)
    return Known(
        source=without_held_out(problem.source, device_kind),
        rules=describe_rules(problem, device_kind, language),
        lessons=lessons,
    )


def _decisive(record: dict[str, Any], every: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the newest confirmation that has a result, else the record itself."""
    confirmed = [one for one in every if one["kind"] == "confirm" and one["result"] is not None]
    return confirmed[-1] if confirmed else record


def judgement_of(
    run: dict[str, Any], record: dict[str, Any], every: Sequence[dict[str, Any]], candidate: dict[str, Any]
) -> Judgement:
    """Return the result of a submitted kernel, without its evidence."""
    shown = _decisive(record, every)
    champion = run["champion_id"] == record["candidate_id"]
    ended = run["end_reason"] is not None
    state = "confirming" if record["state"] == "settled" and not ended else record["state"]
    ratios = (shown["result"] or {}).get("speedups", ())
    headline = next((one for one in ratios if one["against"] == "fastest" and one["workload"] is None), None)
    if candidate["outdated"]:
        headline = candidate["speedup"]
    told = Judgement(
        evaluation_id=record["id"],
        candidate_id=record["candidate_id"],
        run_id=run["id"],
        state=state,
        verdict=shown["verdict"],
        stage=shown["stage"],
        reason=shown["reason"] or run["message"],
        speedup=Speedup.read(headline, confirmed=champion, outdated=candidate["outdated"]),
        champion=champion,
        evidence="",
        next="",
    )
    told.next = _advice(told, ended=ended)
    return told


def _advice(told: Judgement, *, ended: bool) -> str:
    if not ended:
        return f"It is not final: call get_judgement with {told.evaluation_id} and wait_s."
    if told.champion:
        return f"It is proved faster. best_kernel with run_id {told.run_id} and form='file' gives the module to use."
    if told.verdict == "PASSED":
        return "It is right and not proved faster: `reason` and `evidence` say why. Improve it and judge it again."
    if told.verdict is None:
        return "It was not judged: `reason` says why. Fix the problem, or judge again if the device was lost."
    return "Repair what `reason` and `evidence` name, and judge it again."


async def describe(
    context: Context,
    who: Principal,
    told: Judgement,
    record: dict[str, Any],
    every: Sequence[dict[str, Any]],
    candidate: dict[str, Any],
) -> str:
    """Return the evidence of a judgement in words, as the search's own models get it; "" where there is none."""
    shown = _decisive(record, every)
    if shown["result"] is None:
        return ""

    def read() -> Problem:
        with read_session(context.engine) as session:
            return problems.get(session, record["problem_id"], project_id=who.project_id).problem

    problem = await anyio.to_thread.run_sync(read)
    evaluation = from_json(Evaluation, shown["result"])
    kind, language = DeviceKind(record["device_kind"]), Language(candidate["language"])
    estimate = from_json(Ratio, candidate["speedup"]) if candidate["outdated"] else None
    return describe_results(evaluation, problem, kind, language, estimate=estimate)


def state_of(
    run: dict[str, Any],
    events: Sequence[dict[str, Any]],
    champions: Sequence[dict[str, Any]],
    best: dict[str, Any] | None,
) -> RunState:
    """Return a run's state."""
    crowned = next((one for one in champions if one["run_id"] == run["id"]), None)
    if crowned is not None:
        speedup = Speedup.read(crowned["against_fastest"], confirmed=True)
    else:
        speedup = Speedup.read(best["speedup"], confirmed=False, outdated=best["outdated"]) if best else None
    lines = (line_of(one["kind"], one["data"]) for one in events)
    return RunState(
        run_id=run["id"],
        problem_id=run["problem_id"],
        device=run["device_kind"],
        status=run["status"],
        end_reason=run["end_reason"],
        message=run["message"],
        budget={name: value for name, value in run["budget"].items() if value is not None},
        spent={name: round(value, 6) for name, value in run["spend"].items() if value},
        best_candidate_id=run["best_id"],
        champion_id=run["champion_id"],
        speedup=speedup,
        recent=[line for line in lines if line],
        next=next_step(run),
    )


def next_step(run: dict[str, Any]) -> str:
    """Return what to call after a look at a run."""
    if run["end_reason"] is None:
        return "It goes on by itself: run_state with wait_s follows it, stop_run ends it."
    if run["champion_id"] is not None:
        return "best_kernel with form='file' gives the proved module; resume_run with more budget goes on."
    if run["best_id"] is not None:
        return "Nothing was proved faster: `message` says why. best_kernel shows the best; resume_run adds budget."
    if run["end_reason"] == "budget":
        return "No kernel passed within the budget: resume_run with more seconds, or judge_kernel one that you write."
    return "No kernel passed: `message` and `recent` say why. Fix the problem, or judge_kernel one that you write."
