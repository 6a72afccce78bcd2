"""Two layers on rows of bits, which the recipe draws: all that a call is given is true or false."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 32, "n": 64, "device": "cpu"},
    {"name": "odd", "rows": 9, "n": 64, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.first, self.second = nn.Linear(n, hidden), nn.Linear(hidden, 64)

    def forward(self, bits):
        return self.second(nn.functional.gelu(self.first(bits.float())))


def get_inputs(rows=32, n=64):
    return [torch.rand(rows, n) < 0.5]


def get_init_inputs():
    return [64, 512]
