"""RMSNorm in bfloat16, then a linear layer."""

import torch
import torch.nn as nn

WORKLOADS = [{"name": "decode", "rows": 4, "hidden": 512, "out": 256}]


class Model(nn.Module):
    def __init__(self, hidden, out, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=torch.bfloat16))
        self.linear = nn.Linear(hidden, out, bias=False, dtype=torch.bfloat16)
        self.eps = eps

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.linear(self.weight * h.to(x.dtype))


def get_inputs(rows=4, hidden=512):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=512, out=256):
    return [hidden, out]
