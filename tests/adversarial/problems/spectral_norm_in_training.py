"""A linear layer under spectral normalisation in training: one step of the power iteration a call, kept in a buffer."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "64", "rows": 64, "device": "cpu"},
    {"name": "16", "rows": 16, "device": "cpu"},
    {"name": "odd", "rows": 39, "device": "cpu", "held_out": True},
]

TRAIN = True
INNER, OUTER = 192, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(OUTER, INNER) / 12)
        self.bias = nn.Parameter(torch.zeros(OUTER))
        self.register_buffer("u", F.normalize(torch.randn(OUTER), dim=0))

    def forward(self, x):
        """x (rows, inner)."""
        with torch.no_grad():
            v = F.normalize(torch.mv(self.weight.t(), self.u), dim=0, eps=1e-12)
            if self.training:
                self.u.copy_(F.normalize(torch.mv(self.weight, v), dim=0, eps=1e-12))
        sigma = torch.dot(self.u, torch.mv(self.weight, v))
        return F.leaky_relu(F.linear(x, self.weight / sigma, self.bias), 0.1)


def get_inputs(rows=64):
    return [torch.randn(rows, INNER)]


def get_init_inputs():
    return []
