"""A linear layer with a weight of (in, out), as in GPT-2's Conv1D."""

import torch

WORKLOADS = [
    {"name": "a", "tokens": 48, "wide": 96, "out": 192},
    {"name": "b", "tokens": 64, "wide": 128, "out": 256},
    {"name": "h", "tokens": 31, "wide": 60, "out": 200, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(wide, out) * 0.02)
        self.bias = torch.nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


def get_inputs(tokens=48, wide=96, out=192):
    return [torch.randn(tokens, wide)]


def get_init_inputs(wide=96, out=192):
    return [wide, out]
