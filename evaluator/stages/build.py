"""The build stage: screen a Candidate and load it in a cage, which compiles its kernels. Nothing is timed."""

from __future__ import annotations

import time
from typing import Any

from evaluator.cage.policy import Limits
from evaluator.clean import clean
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.inputs.sizes import sizes_to_check
from evaluator.languages import adapter
from evaluator.languages.base import Ahead, BuildFacts
from evaluator.sandbox.build_cache import built_by
from evaluator.screening.screen import screen
from evaluator.stages.judge import Judge
from evaluator.stages.stage_clock import StageClock
from evaluator.subject import rejection
from evaluator.types import BuildReport, Candidate, Evaluation, Language, Problem, Stage, Verdict, content_hash


def build(judge: Judge, problem: Problem, candidate: Candidate) -> BuildReport:
    """Refuse a Candidate that cannot work, and report what it compiled. Never raises for a fault of the Candidate."""
    start, clock = time.perf_counter(), StageClock()
    # Until the source has been parsed as Python, its text is its signature.
    signature = content_hash("text", candidate.source)
    facts = BuildFacts()
    refused: Evaluation | None = None
    try:
        with clock.during(Stage.SCREEN):
            signature = screen(problem, candidate).signature
        with clock.during(Stage.BUILD):
            facts = _compile(judge, problem, candidate)
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


def _compile(judge: Judge, problem: Problem, candidate: Candidate) -> BuildFacts:
    """Build without sizes of held-out Workloads, since later children of the Candidate see the files of a build."""
    one, kind = adapter(candidate.language), judge.backend.kind
    pool = judge.session.build_pool(one)
    shapes: list[dict[str, Any]] = []
    capability = _capability(judge)
    if candidate.language is Language.TRITON and capability:
        sizes = [s.sizes for s in sizes_to_check(problem, problem.workloads_for(kind)) if not s.hidden and not s.layout]
        shapes = judge.session.input_shapes(problem, sizes)
    source = {"candidate.py": candidate.source.encode("utf-8", "surrogatepass")}
    files = {**source, **judge.built_files(candidate)}
    with pool.start(name="build", files=files, limits=Limits.for_device(kind)) as child:
        try:
            facts = one.build(child, kind, Ahead(shapes, capability))
            judge.built.put(candidate, built_by(child))
        except ChildFault as fault:
            raise rejection(fault, Stage.BUILD, "building") from fault
    return facts


def _capability(judge: Judge) -> int:
    """Return 90 for "9.0", or 0 if the device has none."""
    major, _, minor = str(judge.device.facts.get("capability", "")).partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else 0
