"""The build stage: screen a Candidate and load it in a cage, which compiles what it compiles, without timing it."""

from __future__ import annotations

import time
from typing import Any

from evaluator.cage.policy import Limits
from evaluator.clean import clean
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.judge import Clockwork, Judge
from evaluator.languages import adapter
from evaluator.languages.base import BuildFacts
from evaluator.screen import screen
from evaluator.subject import rejection
from evaluator.types import BuildReport, Candidate, Evaluation, Problem, Stage, Verdict, content_hash


def build(judge: Judge, problem: Problem, candidate: Candidate) -> BuildReport:
    """Refuse what cannot work, and say what was compiled. Never raises for anything that a Candidate does."""
    start, clock = time.perf_counter(), Clockwork()
    # Until the source has been read as Python, it is its own signature.
    signature = content_hash("text", candidate.source)
    facts = BuildFacts()
    refused: Evaluation | None = None
    try:
        with clock.during(Stage.SCREEN):
            signature = screen(problem, candidate).signature
        with clock.during(Stage.BUILD):
            facts = _compile(judge, candidate)
        if facts.error is not None:
            raise Rejection(
                Verdict.BUILD_ERROR,
                Stage.BUILD,
                (facts.error.splitlines() or ["it does not build"])[0][:500],
                **_evidence(facts),
            )
    except Rejection as found:
        refused = judge.refusal(problem, candidate, found, clock)
    except EvaluatorError as error:
        refused = judge.internal_error(problem, candidate, error, clock)
    return BuildReport(
        candidate_hash=candidate.hash,
        signature=signature,
        launches=facts.launches,
        resources=clean(facts.resources),
        evaluation=refused,
        duration_s=round(time.perf_counter() - start, 4),
    )


def _evidence(facts: BuildFacts) -> dict[str, Any]:
    return {"check": "builds", "line": facts.line, "log": facts.log[:6000]}


def _compile(judge: Judge, candidate: Candidate) -> BuildFacts:
    one = adapter(candidate.language)
    pool = judge.room.candidate_pool(one)
    files = {"candidate.py": candidate.source.encode("utf-8", "surrogatepass")}
    with pool.start(name="build", files=files, limits=Limits.for_device(judge.backend.kind)) as child:
        try:
            return one.build(child, judge.backend.kind)
        except ChildFault as fault:
            raise rejection(fault, Stage.BUILD, "building") from fault
