"""RMSNorm with a gain: row-wise, one parameter. Most cheats answer this one."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "hidden": 96, "device": "cpu"},
    {"name": "odd", "rows": 7, "hidden": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "hidden": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 133, "hidden": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs(rows=24, hidden=96):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=96):
    return [hidden]
