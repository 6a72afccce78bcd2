"""The outcomes of a Trial: passed, refused, or an error of our own, each as an Evaluation."""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evaluator.clean import clean, clean_text
from evaluator.correctness.compare_outputs import Report
from evaluator.errors import EvaluatorError, Rejection
from evaluator.recipe_sizes import domain_in_words
from evaluator.screening.screen import Screened
from evaluator.stages.time_candidate import Times
from evaluator.stages.trial import Trial
from evaluator.types import Device, Environment, Evaluation, Measurement, Ratio, Stage, Verdict

_DEVICE_FAULTS = (Verdict.RUNTIME_ERROR, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY, Verdict.INTERNAL_ERROR)


@dataclass(frozen=True, slots=True)
class Origin:
    """The machine on which an Evaluation was made."""

    device: Device
    environment: Environment
    isolation: tuple[str, ...]


def passed(
    trial: Trial,
    origin: Origin,
    screened: Screened,
    evidence: Mapping[str, Any],
    measurements: Sequence[Measurement] = (),
    ratios: Sequence[Ratio] = (),
    *,
    timed: bool = True,
    resources: Mapping[str, Any] = MappingProxyType({}),
    note: str = "",
) -> Evaluation:
    """Return the Evaluation of a right Candidate with its times. `note` ends its reason."""
    headline = next((r for r in ratios if r.against == "fastest" and r.workload is None), None)
    if headline is None:
        reason = "right on every check; not timed, because this device only interprets the language"
    else:
        reason = f"right on every check; {headline.value:.2f}x the fastest baseline{_so_far(trial)}"
    reason = f"{reason}; {note}" if note else reason
    return Evaluation(
        verdict=Verdict.PASSED,
        stage=trial.clock.stage,
        reason=reason,
        problem_hash=trial.problem.hash,
        candidate_hash=trial.candidate.hash,
        evidence=clean({**evidence, "domain": domain_in_words(trial.problem, trial.kind)}),
        measurements=tuple(measurements),
        speedups=tuple(ratios),
        isolation=origin.isolation,
        device=origin.device,
        environment=origin.environment,
        libraries=screened.libraries,
        resources=clean(resources),
        timed=timed,
        duration_s=trial.clock.duration_s,
    )


def _so_far(trial: Trial) -> str:
    """Return in words the Baselines that still compile, which may be faster. A confirmation waits for all."""
    late = trial.baseline.pending if trial.baseline is not None and trial.clock.stage is not Stage.CONFIRM else ()
    return f" so far ({', '.join(late)} still compiling)" if late else ""


def slower(trial: Trial, origin: Origin, screened: Screened, report: Report, times: Times) -> Evaluation:
    """Return the Evaluation of a Candidate that is right on the first checks, and clearly slower than the fastest
    Baseline or the best Candidate so far."""
    evidence = {"correctness": report.evidence(), "look": True}
    found = passed(trial, origin, screened, evidence, times.measurements, times.ratios())
    ratio = found.speedup("fastest")
    assert ratio is not None  # every shown Workload was timed
    checks = sum(report.checked.values())
    speed = f"{ratio.value:.2f}x the fastest baseline{_so_far(trial)}"
    if all(one.name in trial.best for one in trial.shown):
        speed += f"; the best so far has {_overall(trial):.2f}x"
    return replace(found, reason=f"right on {checks} checks, slower: {speed}")


def _overall(trial: Trial) -> float:
    """Return the weighted geometric mean of the best speedups so far, which may all be below 1."""
    weight = sum(one.weight for one in trial.shown)
    logs = (one.weight * math.log(trial.best[one.name]) for one in trial.shown)
    return math.exp(sum(logs) / weight)


def refused(trial: Trial, origin: Origin, found: Rejection) -> Evaluation:
    """Return the Evaluation of a refused Candidate, with the text of the faulty line if that is known."""
    lines, line = trial.candidate.source.splitlines(), found.evidence.get("line")
    if isinstance(line, int) and 0 < line <= len(lines):
        found.evidence.setdefault("source_line", lines[line - 1].strip()[:200])
    return Evaluation(
        verdict=found.verdict,
        stage=found.stage,
        reason=clean_text(found.reason, 1000) or "no reason is known",
        problem_hash=trial.problem.hash,
        candidate_hash=trial.candidate.hash,
        evidence=clean({key: value for key, value in found.evidence.items() if value is not None}),
        isolation=origin.isolation,
        device=origin.device,
        environment=origin.environment,
        duration_s=trial.clock.duration_s,
    )


def internal_error(trial: Trial, error: EvaluatorError) -> Rejection:
    """Return the Rejection for a fault of this machine or our own set-up."""
    return Rejection(Verdict.INTERNAL_ERROR, trial.clock.stage, f"{type(error).__name__}: {error}"[:1000])


TORCH_ERRORS = (RuntimeError, TypeError, IndexError, ValueError, ArithmeticError)
"""What torch raises for a call that it refuses."""


def refused_by_torch(error: Exception) -> EvaluatorError:
    """Return the error for a call of the judge that torch refuses, with its place."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}, in {place.name}"
    return EvaluatorError(f"{str(error)[:300]} ({where})")


def may_have_broken_device(found: Rejection) -> bool:
    """Return True if the device has to be tested before the next Candidate."""
    return found.verdict in _DEVICE_FAULTS
