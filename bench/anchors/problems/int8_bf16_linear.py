"""The bfloat16 linear layer that weight-only quantisation is compared with."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b1_4096x14336", "rows": 1, "k": 4096, "n": 14336, "device": "cuda"},
    {"name": "b16_4096x14336", "rows": 16, "k": 4096, "n": 14336, "device": "cuda"},
    {"name": "odd", "rows": 5, "k": 1000, "n": 777, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.linear(x)


def get_inputs(rows=1, k=4096):
    return [torch.randn(rows, k, dtype=torch.bfloat16)]


def get_init_inputs(k=4096, n=14336):
    return [k, n]
