"""A linear layer of eight-bit weights, which are parameters."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [{"name": "a", "rows": 32}, {"name": "b", "rows": 48}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Parameter(torch.randint(-127, 128, (256, 256), dtype=torch.int8), requires_grad=False)
        self.zero = nn.Parameter(torch.randint(-8, 8, (256,), dtype=torch.int32), requires_grad=False)
        self.scale = nn.Parameter(torch.rand(256) * 0.02 + 0.01)

    def forward(self, x):
        return F.linear(x, self.q.float() - self.zero[:, None].float()) * self.scale


def get_inputs(rows=32):
    return [torch.randn(rows, 256)]


def get_init_inputs():
    return []
