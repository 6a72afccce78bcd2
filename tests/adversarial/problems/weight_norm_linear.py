"""Weight normalisation and a linear layer."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "few", "rows": 8, "device": "cpu"},
    {"name": "many", "rows": 64, "device": "cpu"},
    {"name": "odd", "rows": 29, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, dim=384, out=640):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out, dim))
        self.g = nn.Parameter(torch.ones(out, 1))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        w = self.g * self.v / self.v.norm(dim=1, keepdim=True)
        return x @ w.t() + self.bias


def get_inputs(rows=8):
    return [torch.randn(rows, 384)]


def get_init_inputs():
    return [384, 640]
