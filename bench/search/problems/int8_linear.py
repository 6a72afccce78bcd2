"""A linear layer whose weights are 8-bit integers with one scale an output, for decoding."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "decode", "rows": 16, "hidden": 4096, "inner": 16384, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 13, "hidden": 500, "inner": 777, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int, dtype: str = "float32"):
        super().__init__()
        integers = (torch.arange(inner * hidden) * 7919 % 255 - 127).to(torch.int8)
        self.register_buffer("weight", integers.view(inner, hidden))
        self.scale = nn.Parameter(torch.ones(inner, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, inner)."""
        return torch.nn.functional.linear(x, self.weight.to(x.dtype)) * self.scale


def get_inputs(rows=4, hidden=64, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden=64, inner=64, dtype="float32"):
    return [hidden, inner, dtype]
