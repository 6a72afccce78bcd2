"""Let a judge time the chosen Candidate against the fastest mode of each Workload, with its own clock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evaluator.devices.cpu_threads import THREADS_VARIABLE
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.schema import from_json
from evaluator.types import BaselineReport, BaselineTime, Candidate, Clock, Device, Environment, Interval
from tests.gpu.judging import Judge


def judged(path: Path, row: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """Return the verdict, and the ratio with its interval, over all Workloads and each."""
    problem = read_problem(path.read_text(encoding="utf-8"), path.stem)
    candidate = Candidate(source=row["source"], language=detect(row["source"]), proposer="bench")
    os.environ[THREADS_VARIABLE] = str(row["threads"])
    try:
        with Judge("cpu") as judge:
            about = judge.ask("describe", timeout_s=limit_s)
            times = tuple(
                BaselineTime(mode=mode, workload=one["workload"], clock=Clock.CALLS, median_us=us,
                             interval_us=Interval(low=us, high=us))
                for one in row["rows"] for mode, us in one["us"].items() if mode != "ours"
            )  # fmt: skip
            report = BaselineReport(
                problem_hash=problem.hash, device=from_json(Device, about["device"]),
                environment=from_json(Environment, about["environment"]), times=times,
            )  # fmt: skip
            found = judge.judge(problem, candidate, baseline=report, timeout_s=limit_s)
    except RuntimeError as error:
        return {"verdict": "INTERNAL_ERROR", "reason": str(error)}
    result: dict[str, Any] = {"verdict": found.verdict.value, "reason": found.reason}
    for one in found.speedups:
        if one.against == "fastest":
            values = [round(x, 4) for x in (one.value, one.interval.low, one.interval.high)]
            if one.workload is None:
                result["ratio"] = values
            else:
                result.setdefault("workloads", {})[one.workload] = values
    return result
