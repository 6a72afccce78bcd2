"""A linear layer with a low-rank term beside it, as in Mirage's LoRA benchmark: rank 16, 4096 by 4096, bfloat16."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b8", "rows": 8, "hidden": 4096, "out": 4096, "rank": 16, "device": "cuda"},
    {"name": "b16", "rows": 16, "hidden": 4096, "out": 4096, "rank": 16, "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 504, "out": 777, "rank": 20, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, out: int, rank: int):
        super().__init__()
        self.linear = nn.Linear(hidden, out, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(hidden, rank, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(rank, out, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, out)."""
        return self.linear(x) + self.up(self.down(x))


def get_inputs(rows=8, hidden=4096):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=4096, out=4096, rank=16):
    return [hidden, out, rank]
