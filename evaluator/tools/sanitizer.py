"""Run a Candidate under compute-sanitizer: memcheck and racecheck, each in its own cage, on few and small inputs.

They find errors that output comparison misses: an access beyond an allocation that lands in memory that is not
compared, and a race that has gone well so far. An honest kernel must never be refused here. So a finding counts only if
a tool is sure of it and it lies in a kernel that the Candidate wrote; anything else is reported as "not run" with its
reason.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator.clean import clean_text
from evaluator.errors import Rejection
from evaluator.languages import adapter, gpu_kernels
from evaluator.languages.cuda import COMMENT
from evaluator.tools import sanitizer_log, tool
from evaluator.tools.sanitizer_log import Record
from evaluator.tools.target_application import CANDIDATE_FILE, TargetApplication
from evaluator.types import Candidate, DeviceKind, Language, Stage, Verdict

DEVICES = (DeviceKind.CUDA,)
# Synchronisation that racecheck does not follow: a race that it reports there may not be one.
_UNFOLLOWED = re.compile(
    r"\basm\b|\bcuda::|__threadfence|\bvolatile\b|\batomicCAS|\batomicExch|\batomic_ref\b|__pipeline_|memcpy_async"
    r"|mbarrier|\bthis_cluster\b|\bcluster_group\b|__nanosleep"
)
_LIBRARIES = "regex=cublas|cutlass|cudnn|at::native|^void at::|cub::"
_COMMON = (
    "--target-processes", "application-only", "--print-limit", "50", "--show-backtrace", "device",
)  # fmt: skip
_OPTIONS = {
    "memcheck": ("--tool", "memcheck", "--report-api-errors", "no", "--padding", "4096", *_COMMON),
    "racecheck": (
        "--tool", "racecheck", "--racecheck-report", "analysis", "--kernel-name-exclude", _LIBRARIES, *_COMMON,
    ),
}  # fmt: skip
_EACH_ALONE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}  # one allocation per tensor, so that memcheck knows its end
_SHOWN_FINDINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one tool.

    `status` is "clean", "found" or "not run"; `why` explains the last. `records` are the findings that count against
    the Candidate, `others` the number of those that do not. `at` names the inputs of the last call.
    """

    tool: str
    status: str
    why: str = ""
    records: tuple[Record, ...] = ()
    others: int = 0
    at: str = ""
    calls: int = 0
    duration_s: float = 0.0

    def evidence(self) -> dict[str, Any]:
        """Return the evidence for an Evaluation: the calls that were watched, or why none was."""
        told: dict[str, Any] = {"status": self.status, "seconds": round(self.duration_s, 1)}
        if self.why:
            told["why"] = clean_text(self.why, 500)
        if self.calls:
            told["calls"] = self.calls
        if self.others:
            told["not_counted"] = self.others
        return told


@dataclass(slots=True)
class ToolHistory:
    """Results of earlier runs on this machine: why a tool does not work here, and which Candidates were clean."""

    broken: dict[str, str] = field(default_factory=dict)
    clean: dict[tuple[str, str, str], Outcome] = field(default_factory=dict)  # Problem, Candidate, tool


def check(application: TargetApplication, known: ToolHistory) -> dict[str, Any]:
    """Run both tools in parallel and return the evidence. Raises Rejection for a finding that counts."""
    with ThreadPoolExecutor(len(_OPTIONS)) as runners:
        outcomes = list(runners.map(lambda name: _outcome(name, application, known), _OPTIONS))
    for outcome in outcomes:
        if outcome.status == "found":
            raise rejection(outcome, application.candidate)
    return {outcome.tool: outcome.evidence() for outcome in outcomes}


def not_run(why: str) -> dict[str, Any]:
    """Return the evidence where neither tool was run."""
    return {name: Outcome(tool=name, status="not run", why=why).evidence() for name in _OPTIONS}


def unavailable(candidate: Candidate, known: ToolHistory) -> str:
    """Return why no tool can or need be run, or "" if one can."""
    _, why = tool.SANITIZER.find()
    return why or known.broken.get(tool.SANITIZER.name, "") or _needless("memcheck", candidate)


def rejection(outcome: Outcome, candidate: Candidate) -> Rejection:
    """Return the Verdict on a finding with the facts for a repair: access, kernel, line, thread and block."""
    first = outcome.records[0]
    kernel = first.places[-1].base if outcome.tool == "memcheck" else first.places[0].base
    line = next((p.line for p in first.places if p.file == CANDIDATE_FILE and p.line), None)
    where = f" at line {line}" if line else ""
    who = f", by thread {first.thread} of block {first.block}" if first.thread else ""
    told = "; ".join(first.details[:2]).replace("; and ", " and ")
    reason = f"compute-sanitizer's {outcome.tool}: {first.what} in kernel {kernel}{where}{who}"
    return Rejection(
        Verdict.RUNTIME_ERROR,
        Stage.CONFIRM,
        clean_text(f"{reason}{f' ({told})' if told else ''}", 900),
        check=outcome.tool,
        kernel=kernel,
        line=line,
        inputs=outcome.at or None,
        findings=[_told(record) for record in outcome.records[:_SHOWN_FINDINGS]],
        count=len(outcome.records),
        advice=_ADVICE[outcome.tool],
    )


_ADVICE = {
    "memcheck": "keep every access inside its tensor: guard the last, partial block and vector accesses at a row's end",
    "racecheck": "__syncthreads() belongs between writes of shared memory and other threads' uses, before reuse too",
}


def _told(record: Record) -> dict[str, Any]:
    places = [f"{p.name}{f' at {p.file}:{p.line}' if p.file else ''}" for p in record.places[:4]]
    found = {"what": record.what, "where": places, "details": list(record.details[:4])}
    return {**found, **({"thread": record.thread, "block": record.block} if record.thread else {})}


def _outcome(name: str, application: TargetApplication, known: ToolHistory) -> Outcome:
    key = (application.problem.hash, application.candidate.hash, name)
    if key in known.clean:
        return replace(known.clean[key], why="found earlier", duration_s=0.0)
    outcome = _run(name, application, known)
    if outcome.status == "clean":
        known.clean[key] = outcome
        while len(known.clean) > 256:
            known.clean.pop(next(iter(known.clean)))
    return outcome


def _run(name: str, application: TargetApplication, known: ToolHistory) -> Outcome:
    program, _ = tool.SANITIZER.find()
    why = unavailable(application.candidate, known) or _needless(name, application.candidate)
    if program is None or why:
        return Outcome(tool=name, status="not run", why=why)
    limit_s = tool.SANITIZER.seconds()
    for environment in (_EACH_ALONE, {}):  # a CUDA graph of the Candidate's own needs torch's allocator
        ran = application.run(
            [program, *_OPTIONS[name]], limit_s=limit_s, environment=environment, few=name == "racecheck"
        )
        outcome = read(name, ran, application.candidate)
        missing = sanitizer_log.unsupported(ran.log + ran.output)
        if missing:
            known.broken[tool.SANITIZER.name] = missing
        if outcome.status != "not run" or not ran.error or missing:
            break
    return outcome


def _needless(name: str, candidate: Candidate) -> str:
    """Return why a tool has nothing to check, or "" if it has."""
    if not kernels_of_its_own(candidate.source):
        return "the candidate writes no kernels of its own"
    if name == "racecheck" and not adapter(Language.CUDA).gpu_kernels(candidate.source):
        return "the candidate writes no CUDA C++ kernels; a compiler synchronises the shared memory that it uses itself"
    return ""


def read(name: str, ran: tool.ToolRun, candidate: Candidate) -> Outcome:
    """Read the result of one run."""
    outcome = Outcome(
        tool=name, status="not run", at=str(ran.words.get("at", ""))[:200], calls=_count(ran.words.get("did")),
        duration_s=ran.duration_s,
    )  # fmt: skip
    if ran.failed:
        return replace(outcome, why=ran.failed)
    records = sanitizer_log.memory_errors(ran.log) if name == "memcheck" else sanitizer_log.races(ran.log)
    counting = [record for record in records if _counts(name, record, candidate)]
    outcome = replace(outcome, others=len(records) - len(counting))
    if counting:
        return replace(outcome, status="found", records=tuple(counting))
    missing = sanitizer_log.unsupported(ran.log + ran.output)
    if missing:
        return replace(outcome, why=missing)
    if ran.exit is None:
        return replace(outcome, why=f"not done within {ran.duration_s:.0f} s ({tool.SANITIZER.limit_variable})")
    if not ran.done:
        why = (
            ran.error
            or f"the tool ended with status {ran.exit}: {tool.last_line(ran.log) or tool.last_line(ran.output)}"
        )
        return replace(outcome, why=f"the calls were not made: {why}")
    if not sanitizer_log.complete(ran.log):
        return replace(
            outcome, why=f"no summary in the tool's log, which ends: {tool.last_line(ran.log) or 'it is empty'}"
        )
    return replace(outcome, status="clean")


def _counts(name: str, record: Record, candidate: Candidate) -> bool:
    """Return True if a finding is certainly the Candidate's own."""
    if not record.error or not record.places:
        return False
    written = adapter(Language.CUDA).gpu_kernels(candidate.source)
    generated = gpu_kernels(candidate.source, without=Language.CUDA)
    if name == "racecheck":
        followed = not _UNFOLLOWED.search(COMMENT.sub(" ", candidate.source))
        at = record.places[0]
        return followed and at.base not in generated and (at.base in written or at.file == CANDIDATE_FILE)
    return any(place.base in written | generated or place.file == CANDIDATE_FILE for place in record.places)


def kernels_of_its_own(source: str) -> bool:
    """Return True if a Candidate writes GPU kernels, or uses a module that compiles them."""
    return bool(gpu_kernels(source)) or "load_cuda" in source or "cpp_extension" in source


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1000 else 0
