"""The gate of a gated MLP, as in Mirage's benchmark: silu(x W1) * (x W3) for few rows, bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "b8_4096", "rows": 8, "hidden": 4096, "inner": 4096, "device": "cuda"},
    {"name": "b8_11008", "rows": 8, "hidden": 4096, "inner": 11008, "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 504, "inner": 777, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.w1 = nn.Linear(hidden, inner, bias=False, dtype=torch.bfloat16)
        self.w3 = nn.Linear(hidden, inner, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, inner)."""
        return F.silu(self.w1(x)) * self.w3(x)


def get_inputs(rows=8, hidden=4096):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=4096, inner=4096):
    return [hidden, inner]
