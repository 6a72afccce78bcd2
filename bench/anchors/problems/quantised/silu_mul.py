"""silu(gate) * up of packed halves, then float8 by a scale that is given."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "256x14336", "tokens": 256, "inner": 14336, "device": "cuda"},
    {"name": "odd", "tokens": 33, "inner": 1000, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x, scale):
        """x (tokens, 2 * inner) and scale (1,) to float8 (tokens, inner)."""
        gate, up = x.chunk(2, dim=-1)
        return ((F.silu(gate) * up).to(torch.float32) / scale).to(torch.float8_e4m3fn)


def get_inputs(tokens=16, inner=512):
    return [torch.randn(tokens, 2 * inner, dtype=torch.bfloat16), torch.rand(1) + 0.5]
