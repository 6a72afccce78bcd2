"""A scaled row, with keyword-only arguments of the constructor that are left to their defaults."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, *, width=16, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs(rows=8):
    return [torch.randn(rows, 16)]
