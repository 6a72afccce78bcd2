"""RMSNorm then a linear layer, as in Mirage's RMSNorm benchmark: few rows, 4096 by 4096, bfloat16."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b1", "rows": 1, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "b8", "rows": 8, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "b16", "rows": 16, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 504, "out": 777, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=torch.bfloat16))
        self.linear = nn.Linear(hidden, out, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, out)."""
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.linear(self.weight * h.to(x.dtype))


def get_inputs(rows=1, hidden=4096):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=4096, out=4096):
    return [hidden, out]
