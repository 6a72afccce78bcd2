"""Work for Proposers, as the database would hand it out."""

from __future__ import annotations

from typing import Any

from db.views.work import ProposeWork
from evaluator.types import DeviceKind, Problem, Workload
from evolution.types import Arm, Operator

PROBLEM = Problem(
    name="scale",
    source="""import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, dim=-1)
def get_inputs(rows=8, hidden=64):
    return [torch.randn(rows, hidden)]
""",
    workloads=(Workload(name="small", sizes={"rows": 8, "hidden": 64}),),
)
FILE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, dim=-1)
"""


def propose_work(proposer: str = "model", operator: Operator = Operator.CREATE, **changes: Any) -> ProposeWork:
    values: dict[str, Any] = {
        "proposal_id": "prop_1",
        "run_id": "run_1",
        "number": 0,
        "arm": Arm(proposer=proposer, operator=operator),
        "arm_number": 0,
        "island": 0,
        "run_seed": 1,
        "problem": PROBLEM,
        "device_kind": DeviceKind.CPU,
        "device_name": "a CPU",
        "device_facts": {},
        "facts": (),
        "baseline": None,
        "parents": (),
        "lessons": (),
        "tried": (),
    }
    return ProposeWork(**{**values, **changes})
