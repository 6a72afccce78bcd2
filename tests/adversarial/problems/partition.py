"""Free energies of particles that repel each other, in float64: a logarithm of a sum less that of its number of terms,
which nearly cancel."""

import math

import torch

WORKLOADS = [
    {"name": "small", "systems": 24, "particles": 96, "device": "cpu"},
    {"name": "odd", "systems": 5, "particles": 37, "device": "cpu", "held_out": True},
    {"name": "large", "systems": 64, "particles": 512, "device": "cuda"},
    {"name": "ragged", "systems": 9, "particles": 301, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width=0.5):
        super().__init__()
        self.width = width

    def forward(self, x):
        squares = (x[:, :, None] - x[:, None, :]).square()
        return torch.logsumexp(-squares * self.width, dim=-1) - math.log(x.shape[-1])


def get_inputs(systems=24, particles=96):
    return [0.3 * torch.randn(systems, particles, dtype=torch.float64)]


def get_init_inputs():
    return [0.5]
