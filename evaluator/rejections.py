"""Turn the fault of a Candidate's child into a Verdict."""

from __future__ import annotations

import re
from typing import Any

from evaluator.child.protocol.layout import LayoutError
from evaluator.errors import ChildCrashed, ChildError, ChildFault, ChildResumed, ChildTimeout, Rejection
from evaluator.languages.base import line_at_end, line_in_candidate
from evaluator.types import Stage, Verdict

_MOST_WORDS = 300
_TRITONS_PLACE = re.compile(r"at \d+:\d+:")


def rejection(fault: ChildFault | LayoutError, stage: Stage, doing: str) -> Rejection:
    """Return the Verdict on a Candidate after its child failed while `doing`."""
    if isinstance(fault, LayoutError):
        return Rejection(Verdict.RUNTIME_ERROR, stage, f"{doing}: its result cannot be read: {fault}")
    evidence: dict[str, Any] = {"check": "runs", "doing": doing, "output": fault.output[-2000:]}
    if isinstance(fault, ChildTimeout):
        line = line_at_end(fault.output)
        evidence |= {"limit_s": fault.timeout_s, "operation": fault.op, "line": line}
        where = f", when it was in line {line}" if line else ""
        return Rejection(Verdict.TIMEOUT, stage, f"{doing}: not done within {fault.timeout_s:g} s{where}", **evidence)
    if isinstance(fault, ChildResumed):
        evidence["check"] = "stopped"
        reason = f"{doing}: it ran after it was stopped so that its outputs could be read"
        return Rejection(Verdict.REWARD_HACK, stage, reason, **evidence)
    if isinstance(fault, ChildError):
        evidence |= {"error": fault.kind, "message": fault.message, "trace": fault.trace}
        line = _first_line(fault.message) if fault.kind == "CompileError" else None
        evidence["line"] = line or line_in_candidate(fault.trace)
        return Rejection(_verdict_of_error(fault), stage, f"{doing}: {fault.kind}: {_said(fault)}", **evidence)
    if isinstance(fault, ChildCrashed):
        evidence |= {"signal": fault.signal, "exit_code": fault.exit_code, "line": line_at_end(fault.output)}
        verdict = Verdict.OUT_OF_MEMORY if fault.oom else Verdict.RUNTIME_ERROR
        return Rejection(verdict, stage, f"{doing}: its process {fault}", **evidence)
    return Rejection(Verdict.RUNTIME_ERROR, stage, f"{doing}: {fault}", **evidence)


def _said(fault: ChildError) -> str:
    """Return the first line of an error, or the cause in an error of Triton's compiler: that begins with a place, and
    the cause follows the source, whose last line a caret ends."""
    place, *lines = [line.strip() for line in fault.message.splitlines() if line.strip()] or [""]
    if fault.kind != "CompilationError" or not lines or not _TRITONS_PLACE.fullmatch(place):
        return place[:_MOST_WORDS]
    carets = [number for number, line in enumerate(lines) if line == "^"]
    cause = lines[carets[-1] + 1 :] if carets else lines[-1:]
    told = cause or lines[:-1][-1:]  # without a cause the line of the source
    return f"{place} {told[0] if told else ''}"[:_MOST_WORDS]


def _first_line(log: str) -> int | None:
    """Return the line of the first error in a compiler's log."""
    head = log.splitlines()[0] if log else ""
    return line_in_candidate(head)


def _verdict_of_error(fault: ChildError) -> Verdict:
    if fault.oom:
        return Verdict.OUT_OF_MEMORY
    if fault.kind in ("CompileError", "CompilationError"):
        return Verdict.BUILD_ERROR
    if fault.kind in ("InvalidModule", "SyntaxError", "IndentationError"):
        return Verdict.INVALID_SUBMISSION
    return Verdict.RUNTIME_ERROR
