"""A projection with a bias, as a decoder's layers have it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "small", "tokens": 16, "hidden": 256, "device": "cpu"},
    {"name": "large", "tokens": 48, "hidden": 768, "device": "cpu"},
    {"name": "odd", "tokens": 11, "hidden": 500, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, hidden) / hidden**0.5)
        self.bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


def get_inputs(tokens=16, hidden=256):
    return [torch.randn(tokens, hidden)]


def get_init_inputs(hidden=256):
    return [hidden]
