"""Weight-only int4 linear: two weights a byte, a bfloat16 scale for each group of 128 along the depth."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b1_4096x14336", "rows": 1, "k": 4096, "n": 14336, "device": "cuda"},
    {"name": "b16_4096x14336", "rows": 16, "k": 4096, "n": 14336, "device": "cuda"},
    {"name": "odd", "rows": 5, "k": 1024, "n": 777, "device": "cuda", "held_out": True},
]
GROUP = 128


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.register_buffer("w", torch.randint(0, 256, (n, k // 2), dtype=torch.uint8))
        self.register_buffer("scale", (torch.rand(n, k // GROUP) * 0.01).to(torch.bfloat16))

    def forward(self, x):
        """x (rows, k) to (rows, n): byte i of a weight's row holds its elements 2 i and 2 i + 1."""
        pairs = torch.stack([self.w & 15, self.w >> 4], -1)
        weight = (pairs.flatten(1).to(x.dtype) - 8).unflatten(1, (-1, GROUP)) * self.scale[..., None]
        return x @ weight.flatten(1).t()


def get_inputs(rows=1, k=4096):
    return [torch.randn(rows, k, dtype=torch.bfloat16)]


def get_init_inputs(k=4096, n=14336):
    return [k, n]
