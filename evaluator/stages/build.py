"""The build stage: screen a Candidate and load it in a cage, which compiles its kernels. Nothing is timed."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from evaluator.cage.policy import Limits
from evaluator.clean import clean
from evaluator.device_session import DeviceSession
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.inputs.sizes import sizes_to_check
from evaluator.languages.base import BuildFacts, BuildTarget
from evaluator.rejections import rejection
from evaluator.sandbox.build_cache import collect_built_files
from evaluator.screening.screen import screen
from evaluator.stages.candidate_children import CandidateChildren
from evaluator.stages.judge import Judge
from evaluator.stages.trial import Trial
from evaluator.types import (
    BuildReport,
    Candidate,
    Device,
    DeviceKind,
    Evaluation,
    Problem,
    Stage,
    Verdict,
    content_hash,
)


def build(judge: Judge, problem: Problem, candidate: Candidate) -> BuildReport:
    """Refuse a Candidate that cannot work, and report what it compiled. Never raises for a fault of the Candidate."""
    start = time.perf_counter()
    trial = Trial(problem=problem, candidate=candidate, kind=judge.backend.kind)
    # Until the source has been parsed as Python, its text is its signature.
    signature = content_hash("text", candidate.source)
    facts = BuildFacts()
    refused: Evaluation | None = None
    try:
        with trial.clock.during(Stage.SCREEN):
            signature = screen(problem, candidate).signature
            trial.check_language()
        with trial.clock.during(Stage.BUILD), _not_timed_meanwhile(judge):
            facts = _compile(judge.session, judge.children, trial, _capability(judge.device))
        if facts.error is not None:
            raise Rejection(
                Verdict.BUILD_ERROR,
                Stage.BUILD,
                (facts.error.splitlines() or ["it does not build"])[0][:500],
                **_evidence(facts),
            )
    except Rejection as found:
        refused = judge.refused(trial, found)
    except EvaluatorError as error:
        refused = judge.internal_error(trial, error)
    return BuildReport(
        candidate_hash=candidate.hash,
        signature=signature,
        launches=facts.launches,
        resources=clean(facts.resources),
        evaluation=refused,
        duration_s=round(time.perf_counter() - start, 4),
    )


def _not_timed_meanwhile(judge: Judge) -> AbstractContextManager[None]:
    """Let nobody time on the cores where compilers run: on a CPU those of the judge's children."""
    return judge.session.shared() if judge.backend.kind is DeviceKind.CPU else nullcontext()


def _evidence(facts: BuildFacts) -> dict[str, Any]:
    return {"check": "builds", "line": facts.line, "log": facts.log[:6000]}


def _compile(session: DeviceSession, children: CandidateChildren, trial: Trial, capability: int) -> BuildFacts:
    """Build without sizes of held-out Workloads, since later children of the Candidate see the files of a build."""
    candidate, kind = trial.candidate, trial.kind
    pool = session.pools.for_build(trial.adapter)
    shapes: list[dict[str, Any]] = []
    if trial.adapter.builds_for_shapes and capability:
        every = sizes_to_check(trial.problem, trial.workloads)
        shapes = session.pools.input_shapes(trial.problem, [s.sizes for s in every if not s.hidden and not s.layout])
    files = {"candidate.py": candidate.source.encode("utf-8", "surrogatepass"), **children.files(candidate)}
    with pool.start(name="build", files=files, limits=Limits.for_device(kind)) as child:
        try:
            facts = trial.adapter.build(child, kind, BuildTarget(shapes, capability))
            children.built.put(candidate, collect_built_files(child))
        except ChildFault as fault:
            raise rejection(fault, Stage.BUILD, "building") from fault
    return facts


def _capability(device: Device) -> int:
    """Return 90 for "9.0", or 0 if the device has none."""
    major, _, minor = str(device.facts.get("capability", "")).partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else 0
