"""A judge for tests: speaks the protocol of `python -m evaluator serve` and does what the source says.

`speed=1.5` in a source passes with that speedup; `verdict=TIMEOUT` fails so; `refused` in a reference refuses it.
`die`, `hang`, `garbage` misbehave: once, if FAKE_JUDGE_ONCE names a file to remember it by, else always.
`sleep=0.2` takes that long, unless the file that FAKE_JUDGE_HURRY names is there.
Every request is added, one line each, to the file FAKE_JUDGE_LOG.
What says no speed has that of FAKE_JUDGE_SPEED, else 1. References are admitted with the facts and the evidence of the
admission in the file FAKE_JUDGE_ADMISSION, where that is set.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluator.schema import from_json, to_json
from evaluator.types import (
    Admission,
    BaselineReport,
    BaselineTime,
    BuildReport,
    Candidate,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Measurement,
    Problem,
    Ratio,
    Stage,
    Verdict,
    WorkloadFacts,
    content_hash,
)

COMMAND = f"{sys.executable} {Path(__file__).resolve()}"
"""The value of WARPWRIGHT_JUDGE_COMMAND for this judge."""
DEVICE = Device(kind=DeviceKind.CPU, name="Test CPU", uuid="cpu-0")
ENVIRONMENT = Environment(python="3.11", torch="2.13")
BASELINE_US = 20.0
NOTES: dict[str, list[dict[str, Any]]] = {
    "baseline": [{"stage": "baseline", "mode": "eager", "workload": "small"}],
    "confirm": [
        {"stage": "confirm", "step": "check"},
        {"stage": "confirm", "step": "time", "workload": "", "pair": 3, "pairs": 8, "done": 2, "total": 8},
        {"stage": "confirm", "step": "time", "workload": "", "pair": 4, "pairs": 8, "done": 3, "total": 8},
        {"stage": "something new"},
    ],
}
"""Notes on its work that it sends before it answers, by operation."""


def admission(problem: Problem, verdict: Verdict) -> Admission:
    made = Admission(
        problem_hash=problem.hash,
        verdict=verdict,
        reason="accepted" if verdict is Verdict.PASSED else "zeros pass this reference",
        facts=tuple(
            WorkloadFacts(workload=w.name, inputs=("4",), outputs=("4",), bytes_moved=32) for w in problem.workloads
        ),
        device=DEVICE,
        environment=ENVIRONMENT,
    )
    recorded = os.environ.get("FAKE_JUDGE_ADMISSION")
    return _as_recorded(made, Path(recorded)) if recorded else made


def _as_recorded(made: Admission, file: Path) -> Admission:
    found = from_json(Admission, json.loads(file.read_text(encoding="utf-8")))
    of = {facts.workload: facts for facts in found.facts}
    facts = tuple(of[one.workload] for one in made.facts)
    return replace(made, reason=found.reason, evidence=found.evidence, facts=facts)


def times(problem: Problem) -> tuple[BaselineTime, ...]:
    interval = Interval(low=BASELINE_US * 0.9, high=BASELINE_US * 1.1)
    return tuple(
        BaselineTime(mode="eager", workload=w.name, clock=Clock.CALLS, median_us=BASELINE_US, interval_us=interval)
        for w in problem.workloads
    )


def passed(problem: Problem, candidate: Candidate, speed: float, *, confirm: bool) -> Evaluation:
    us = BASELINE_US / speed
    measurements = tuple(
        Measurement(
            workload=time.workload,
            clock=Clock.CALLS,
            samples_us=(us, us * 1.01),
            median_us=us,
            interval_us=Interval(low=us * 0.9, high=us * 1.1),
            baselines=(time,),
        )
        for time in times(problem)
    )
    ratios = tuple(
        Ratio(against=name, value=speed, interval=Interval(low=speed * 0.98, high=speed * 1.02))
        for name in ("fastest", "eager")
    )
    return Evaluation(
        verdict=Verdict.PASSED,
        stage=Stage.CONFIRM if confirm else Stage.INTEGRITY,
        reason="right and timed",
        problem_hash=problem.hash,
        candidate_hash=candidate.hash,
        evidence={"promote": speed > 1.01} if confirm else {"seeds": 8},
        measurements=measurements,
        speedups=ratios,
        device=DEVICE,
        environment=ENVIRONMENT,
    )


def failed(problem: Problem, candidate: Candidate, verdict: Verdict) -> Evaluation:
    return Evaluation(
        verdict=verdict,
        stage=Stage.CORRECTNESS,
        reason=f"it was {verdict}",
        problem_hash=problem.hash,
        candidate_hash=candidate.hash,
    )


def misbehave(text: str) -> None:
    """Die, hang or talk nonsense, where the text says so and it was not done before."""
    how = next((word for word in ("die", "hang", "garbage") if word in text), None)
    once = os.environ.get("FAKE_JUDGE_ONCE")
    if how is None or (once and Path(once).exists()):
        return
    if once:
        Path(once).touch()
    if how == "die":
        print("a word before the end", file=sys.stderr, flush=True)
        os._exit(11)
    if how == "hang":
        time.sleep(600)
    print("this is no JSON", flush=True)


def answer(request: dict[str, Any]) -> Any:
    op = request["op"]
    if op == "ping":
        return {}
    if op == "describe":
        return {"device": to_json(DEVICE), "environment": to_json(ENVIRONMENT), "isolation": []}
    problem = from_json(Problem, request["problem"])
    if op == "admit":
        misbehave(problem.source)
        verdict = Verdict.INVALID_REFERENCE if "refused" in problem.source else Verdict.PASSED
        return to_json(admission(problem, verdict))
    if op == "baseline":
        return to_json(
            BaselineReport(problem_hash=problem.hash, device=DEVICE, environment=ENVIRONMENT, times=times(problem))
        )
    candidate = from_json(Candidate, request["candidate"])
    if op == "build":
        return to_json(BuildReport(candidate_hash=candidate.hash, signature=content_hash(candidate.source)))
    found = re.search(r"sleep=([\d.]+)", candidate.source)
    if found and not Path(os.environ.get("FAKE_JUDGE_HURRY") or "/nowhere").exists():
        time.sleep(float(found[1]))
    misbehave(candidate.source)
    if found := re.search(r"verdict=(\w+)", candidate.source):
        return to_json(failed(problem, candidate, Verdict(found[1])))
    found = re.search(r"speed=([\d.]+)", candidate.source)
    speed = float(found[1] if found else os.environ.get("FAKE_JUDGE_SPEED", "1"))
    return to_json(passed(problem, candidate, speed, confirm=op == "confirm"))


def main() -> None:
    log = os.environ.get("FAKE_JUDGE_LOG")
    for line in sys.stdin:
        request = json.loads(line)
        if log:
            subject = (request.get("candidate") or {}).get("source", "")
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{request['op']} {subject.strip()}\n")
        for note in NOTES.get(request["op"], ()) if request.get("notes") else ():
            print(json.dumps({"id": request["id"], "note": note}), flush=True)
        try:
            reply = {"id": request["id"], "ok": True, "result": answer(request)}
        except ValueError as error:
            reply = {"id": request["id"], "ok": False, "error": str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
