"""Linear layer, GELU and softmax: the fusion of KernelBench level 2, problem 99, in bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "128", "rows": 128, "k": 8192, "n": 8192, "device": "cuda"},
    {"name": "1024", "rows": 1024, "k": 4096, "n": 8192, "device": "cuda"},
    {"name": "odd", "rows": 37, "k": 1000, "n": 777, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, k: int, n: int):
        super().__init__()
        self.linear = nn.Linear(k, n, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, k) to (rows, n)."""
        return torch.softmax(F.gelu(self.linear(x)), dim=1)


def get_inputs(rows=1, k=256):
    return [torch.randn(rows, k, dtype=torch.bfloat16)]


def get_init_inputs(k=256, n=256):
    return [k, n]
