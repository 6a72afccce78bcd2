"""Run the commands of `evaluator.cli` that need a judge. What is imported here loads torch, which takes seconds."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import EvaluatorError, Rejection
from evaluator.report import report
from evaluator.schema import to_json
from evaluator.serve import make_backend
from evaluator.stages.admit import admit
from evaluator.stages.baseline import baseline
from evaluator.stages.build import build
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.stages.other_threads import with_other_threads
from evaluator.stages.profile import profile
from evaluator.stages.profile import render as render_profile
from evaluator.types import Admission, BaselineReport, BuildReport, Candidate, Evaluation, Problem, Verdict

Result = Evaluation | Admission | BaselineReport | BuildReport
_USAGE, _INTERNAL = 2, 3


@dataclass(frozen=True, slots=True)
class Request:
    """Hold what a command's files say. `known` are Baselines that were timed before."""

    problem: Problem
    candidate: Candidate | None
    champion: Candidate | None
    known: BaselineReport | None


def answer(request: Request, arguments: argparse.Namespace) -> int:
    """Run a command with a judge of its own, print its result, and return the exit status."""
    if arguments.json not in (None, "-") and not Path(arguments.json).parent.is_dir():
        print(f"error: {arguments.json}: its folder does not exist", file=sys.stderr)
        return _USAGE
    try:
        judge = Judge(make_backend(arguments.device))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE
    except EvaluatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INTERNAL
    try:
        if arguments.command == "profile":
            return _profile(judge, request, arguments)
        result = _run(judge, arguments.command, request)
    except EvaluatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INTERNAL
    finally:
        judge.close()
    return exit_status(result) if _print(result, arguments.json) else _INTERNAL


def exit_status(result: Result) -> int:
    """Return the exit status of the process for a result."""
    if isinstance(result, BaselineReport):
        return 0
    if isinstance(result, BuildReport):
        return 0 if result.evaluation is None else exit_status(result.evaluation)
    return {Verdict.PASSED: 0, Verdict.INVALID_REFERENCE: 2, Verdict.INTERNAL_ERROR: 3}.get(result.verdict, 1)


def _run(judge: Judge, command: str, request: Request) -> Result:
    problem, candidate = request.problem, request.candidate
    if command == "admit":
        return admit(judge, problem)
    if command == "baseline":
        return baseline(judge, problem)
    assert candidate is not None  # checked by the caller
    if command == "build":
        return build(judge, problem, candidate)
    if command == "confirm":
        found = confirm(judge, problem, candidate, request.champion, request.known)
    else:
        found = judge.judge(problem, candidate, request.known)
    return with_other_threads(judge, problem, candidate, found)


def _profile(judge: Judge, request: Request, arguments: argparse.Namespace) -> int:
    assert request.candidate is not None  # checked by the caller
    try:
        found = profile(judge, request.problem, request.candidate, arguments.workload)
    except Rejection as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1
    return 0 if _tell(json.dumps(to_json(found), indent=2), render_profile(found), arguments.json) else _INTERNAL


def _print(result: Result, target: str | None) -> bool:
    return _tell(json.dumps(to_json(result), indent=2), report(result), target)


def _tell(data: str, words: str, target: str | None) -> bool:
    """Print a result as data or in words, and write the data to a file. Return whether that could be written."""
    print(data if target == "-" else words)
    if target is None or target == "-":
        return True
    try:
        Path(target).write_text(data + "\n", encoding="utf-8")
    except OSError as error:
        print(f"error: {target}: {error.strerror}", file=sys.stderr)
        return False
    return True
