"""Time the judge on a GPU with two hand-written kernels: `python bench/judge/gpu.py`.

Admit and time the Baselines of examples/problems/rmsnorm_residual.py (all its CUDA Workloads), then judge a Triton and
a CUDA C++ kernel and eager PyTorch against itself. Print a table; write bench/results/judge_gpu-....json with the GPU,
driver, torch and Triton versions, every sample, and the judge's own durations in seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evaluator.problem import read_problem  # noqa: E402
from evaluator.schema import from_json, to_json  # noqa: E402
from evaluator.types import Evaluation, Problem  # noqa: E402
from tests.gpu.judging import Judge, candidate  # noqa: E402

PROBLEM = ROOT / "examples" / "problems" / "rmsnorm_residual.py"
RESULTS = ROOT / "bench" / "results"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="cuda:0")
    arguments.add_argument("--problem", type=Path, default=PROBLEM)
    arguments.add_argument("--candidates", nargs="*", default=["honest_triton", "honest_cuda"])
    arguments.add_argument("--profile", type=Path, help="a file for the judge's own time by function, as JSON lines")
    chosen = arguments.parse_args()
    problem = read_problem(chosen.problem.read_text(), chosen.problem.stem)
    with Judge(chosen.device, log=Path("/dev/stderr"), profile=chosen.profile) as judge:
        report = measure(judge, problem, chosen.candidates)
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = report["device"]["name"].replace(" ", "-").lower()
    target = RESULTS / f"judge_gpu-{problem.name}-{name}.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    show(report)
    if chosen.profile is not None:
        for row in map(json.loads, chosen.profile.read_text().splitlines()[:120]):
            print(f"{row['inclusive_s']:9.2f} {row['own_s']:9.2f}  {row['where']}")
    print(f"written: {target.relative_to(ROOT)}")
    return 0


def measure(judge: Judge, problem: Problem, names: list[str]) -> dict[str, Any]:
    """Return all printed and recorded figures as JSON values."""
    described, describe_s = timed(lambda: judge.ask("describe"))
    admission, admit_s = timed(lambda: judge.ask("admit", problem=problem, timeout_s=600))
    baseline, baseline_s = timed(lambda: judge.baselines(problem, timeout_s=900))
    eager = dataclasses.replace(baseline, times=tuple(t for t in baseline.times if t.mode == "eager"))
    runs = [("plain_torch", eager, "A/A: eager against eager"), *((name, baseline, "") for name in names)]
    judged = []
    for name, against, note in runs:
        seen, wall_s = timed(lambda n=name, b=against: judge.judge(problem, candidate(n), baseline=b, timeout_s=600))
        judged.append({"candidate": name, "note": note, "wall_s": round(wall_s, 2), "evaluation": to_json(seen)})
    return {
        **described,
        "problem": problem.name,
        "admission": {"verdict": admission["verdict"], "reason": admission["reason"]},
        "judge_s": {"describe": round(describe_s, 2), "admit": round(admit_s, 2), "baseline": round(baseline_s, 2)},
        "baselines": to_json(baseline),
        "judged": judged,
    }


def timed(action: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return action(), time.perf_counter() - start


def show(report: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{report['device']['name']}  {report['environment']}")
    print(f"judge seconds: {report['judge_s']}; admission {report['admission']['verdict']}")
    for time_ in report["baselines"]["times"]:
        print(f"  {time_['mode']:<28}{time_['workload']:<14}{time_['median_us']:>10.2f} us  {time_['clock']}")
    for mode, why in report["baselines"]["skipped"].items():
        print(f"  {mode:<28}skipped: {why}")
    for entry in report["judged"]:
        seen = from_json(Evaluation, entry["evaluation"])
        print(f"{entry['candidate']} {entry['note']} {seen.verdict} in {entry['wall_s']} s: {seen.reason}")
        for m in seen.measurements:
            floor = f"{m.floor_us:.1f}" if m.floor_us is not None else "?"
            baselines = ", ".join(f"{b.mode} {b.median_us:.2f}" for b in m.baselines)
            print(f"  {m.workload:<14}{m.median_us:>10.2f} us  [{m.clock}] floor {floor}; baselines: {baselines}")
        for r in seen.speedups:
            where = r.workload or "all workloads"
            print(f"  x{r.value:.3f} [{r.interval.low:.3f}, {r.interval.high:.3f}] against {r.against} on {where}")
        print(f"  stages, s: { {k: round(v, 2) for k, v in seen.duration_s.items()} }")


if __name__ == "__main__":
    sys.exit(main())
