"""Two layers whose weights torch computes from others: each has a class of its own."""

import torch
import torch.nn as nn
from torch.nn.utils import parametrizations


class Model(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.up = parametrizations.weight_norm(nn.Linear(width, 8))
        self.down = parametrizations.orthogonal(nn.Linear(8, 8))

    def forward(self, x):
        return self.down(self.up(x).relu())


def get_inputs(rows=8):
    return [torch.randn(rows, 16)]
