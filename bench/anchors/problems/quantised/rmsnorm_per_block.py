"""RMSNorm, then blocks of 128 elements to float8, each by its largest magnitude."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "4096x4096", "tokens": 4096, "hidden": 4096, "device": "cuda"},
    {"name": "odd", "tokens": 33, "hidden": 1152, "device": "cuda", "held_out": True},
]
BLOCK, LARGEST = 128, 448.0
LEAST_SCALE = 1.0 / (LARGEST * 512.0)


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden).to(torch.bfloat16))

    def forward(self, x):
        """x (tokens, hidden) to float8 of that shape, and scales (tokens, hidden / 128)."""
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        blocks = (h.to(x.dtype) * self.weight).unflatten(-1, (-1, BLOCK)).to(torch.float32)
        scale = (blocks.abs().amax(-1, keepdim=True) * (1.0 / LARGEST)).clamp(min=LEAST_SCALE)
        quantised = (blocks / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
        return quantised.flatten(-2), scale.squeeze(-1)


def get_inputs(tokens=16, hidden=512):
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=512):
    return [hidden]
