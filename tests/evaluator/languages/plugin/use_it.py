"""Run in a checkout that has the plug-in: takes a kernel in it from detection to a download, and prints JSON."""

from __future__ import annotations

import json

from evaluator.languages import adapter, detect
from evaluator.problem import read_problem
from evaluator.screening.screen import screen
from evaluator.serve import make_backend
from evaluator.stages.build import build
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import Rules, TimingProtocol
from evaluator.types import BaselineReport, BaselineTime, Candidate, Clock, DeviceKind, Interval, WorkloadFacts
from evolution.types import Operator
from prompts import Material, render
from prompts.techniques import techniques
from runtime.settings import Settings
from service.app import create_app
from service.exports import KERNELS, Export
from service.rendering.highlighting import highlight

PROBLEM = '''"""RMSNorm."""
import torch

WORKLOADS = [{"name": "small", "rows": 48, "hidden": 256}]


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def get_inputs(rows=48, hidden=256):
    return [torch.randn(rows, hidden)]
'''
KERNEL = """import torch


@torch.jit.script
def rmsnorm(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return rmsnorm(x)
"""
WRONG = KERNEL.replace("1e-6", "1e-2")
BROKEN = KERNEL.replace("torch.rsqrt", "torch.no_such_function")


def candidate(source: str) -> Candidate:
    return Candidate(source=source, language=detect(source), proposer="file")


def main() -> None:
    task, kernel = read_problem(PROBLEM, "rmsnorm"), candidate(KERNEL)
    language = adapter(kernel.language)
    brief = Rules(least_pairs=2, most_pairs=2, round_us=1000.0, budget_s=0.1, rehearse=False, closely=False)
    judge = Judge(make_backend("cpu"), protocol=TimingProtocol(judge=brief))
    interval = Interval(low=1, high=1)
    time = BaselineTime(mode="eager", workload="small", clock=Clock.CALLS, median_us=1.0, interval_us=interval)
    eager = BaselineReport(  # without it every Baseline would be compiled
        problem_hash=task.hash, device=judge.device, environment=judge.environment, times=(time,)
    )
    try:
        built = build(judge, task, candidate(BROKEN)).evaluation
        found = {
            "language": kernel.language.value,
            "signature": screen(task, kernel).signature,
            "built": build(judge, task, kernel).evaluation is None,
            "broken": built.verdict.value if built else "",
            "right": judge.judge(task, kernel, eager).verdict.value,
            "wrong": judge.judge(task, candidate(WRONG), eager).verdict.value,
        }
    finally:
        judge.close()
    material = Material(
        problem=task, device_kind=DeviceKind.CPU, operator=Operator.CREATE, variant=kernel.language.value
    )
    file = Export(
        problem=task, candidate=kernel, candidate_id="cand_1", device_kind=DeviceKind.CPU, evaluation=None,
        confirmed=False, facts=(WorkloadFacts(workload="small", inputs=(), outputs=(), bytes_moved=1),),
        dated="2026-01-01T00:00:00Z", proposed_by="file",
    )  # fmt: skip
    found |= {
        "niche": str(language.niche(KERNEL)),
        "notes": techniques(kernel.language, PROBLEM, {}),
        "prompt": render(material, tokens=20_000).user,
        "download": KERNELS["py"].build(file),
        "page": str(highlight(KERNEL)),
        "api": create_app(Settings(database_url="sqlite://")).openapi()["components"]["schemas"]["Language"]["enum"],
    }
    print(json.dumps(found))


main()
