"""RMSNorm in bfloat16, summed in float32 as careful code does."""

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
        self.weight = torch.nn.Parameter(torch.ones(hidden, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return h.to(x.dtype) * self.weight


def get_inputs(rows=24, hidden=96):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=96):
    return [hidden]
