"""Linear layer with an unmerged low-rank adapter for decoding, as in Mirage's LoRA benchmark."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "b1", "rows": 1, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "b8", "rows": 8, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "b16", "rows": 16, "hidden": 4096, "out": 4096, "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 500, "out": 777, "device": "cuda", "held_out": True},
]
RANK = 16
SCALE = 2.0


class Model(nn.Module):
    def __init__(self, hidden: int, out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, hidden, dtype=torch.bfloat16) * hidden**-0.5)
        self.down = nn.Parameter(torch.randn(RANK, hidden, dtype=torch.bfloat16) * hidden**-0.5)
        self.up = nn.Parameter(torch.randn(out, RANK, dtype=torch.bfloat16) * RANK**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, out)."""
        return F.linear(x, self.weight) + SCALE * F.linear(F.linear(x, self.down), self.up)


def get_inputs(rows=1, hidden=512):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=512, out=512):
    return [hidden, out]
