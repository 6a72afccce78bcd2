"""RMSNorm without a gain, for short rows, prefill and decoding."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "width": 256, "device": "cpu"},
    {"name": "prefill", "rows": 256, "width": 1024, "device": "cpu"},
    {"name": "decode", "rows": 4, "width": 8192, "device": "cpu"},
    {"name": "odd", "rows": 21, "width": 3001, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width)]
