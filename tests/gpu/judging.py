"""A judge of its own process for the GPU tests: `python -m evaluator serve`, asked one line at a time."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.schema import from_json, to_json
from evaluator.types import BaselineReport, Candidate, Evaluation, Problem

ROOT = Path(__file__).parents[2]
CANDIDATES = Path(__file__).parent / "candidates"

WORKLOADS = """WORKLOADS = [
    {"name": "prefill", "rows": 2048, "hidden": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 133, "hidden": 1000, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]
"""


def rmsnorm_problem() -> Problem:
    """The example problem with one Workload that is timed and one that is held out."""
    source = (ROOT / "examples" / "problems" / "rmsnorm_residual.py").read_text()
    source = re.sub(r"^WORKLOADS = \[.*?^\]\n", WORKLOADS, source, flags=re.MULTILINE | re.DOTALL)
    return read_problem(source, "rmsnorm_residual")


def candidate(name: str) -> Candidate:
    return of_source((CANDIDATES / f"{name}.py").read_text())


def of_source(source: str) -> Candidate:
    return Candidate(source=source, language=detect(source), proposer="test")


def explained(evaluation: Evaluation) -> str:
    return f"{evaluation.verdict} at {evaluation.stage}: {evaluation.reason} {dict(evaluation.evidence)}"


class Judge:
    """Serves requests until closed; a request that takes longer than its limit ends the judge and the test.

    With `profile` where the judge's own thread spends its time goes to that file (`bench.sampler`)."""

    def __init__(self, device: str = "cuda:0", log: Path | None = None, profile: Path | None = None) -> None:
        self._ids = itertools.count(1)
        self._log = (log or Path("/dev/null")).open("a")
        watched = [] if profile is None else ["-m", "bench.sampler", str(profile)]
        self._process = subprocess.Popen(
            [sys.executable, *(watched or ["-m"]), "evaluator", "serve", "--device", device],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, op: str, *, timeout_s: float = 110.0, **fields: Any) -> Any:
        """The result of one operation. Raises RuntimeError with the judge's words."""
        request = {"id": str(next(self._ids)), "op": op, **{key: to_json(value) for key, value in fields.items()}}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        alarm = threading.Timer(timeout_s, self._process.kill)
        alarm.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            alarm.cancel()
        if not line:
            raise RuntimeError(f"{op}: the judge ended (status {self._process.poll()}, limit {timeout_s:g} s)")
        reply = json.loads(line)
        if not reply["ok"]:
            raise RuntimeError(f"{op}: {reply['error']}")
        return reply["result"]

    def baselines(self, problem: Problem, *, timeout_s: float = 110.0) -> BaselineReport:
        """The Baselines of a Problem, after those that compile for long."""
        end = time.monotonic() + timeout_s
        found = from_json(BaselineReport, self.ask("baseline", problem=problem, timeout_s=timeout_s))
        while found.pending and time.monotonic() < end:
            asked = {"problem": problem, "baseline": found, "patient": True}
            found = from_json(BaselineReport, self.ask("baseline", timeout_s=timeout_s, **asked))
        return found

    def judge(self, problem: Problem, what: Candidate, **fields: Any) -> Evaluation:
        return from_json(Evaluation, self.ask("judge", problem=problem, candidate=what, **fields))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
