"""Add a bias, then GELU in its tanh form, written out as in GPT-2."""

import math

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-32x3072", "rows": 32, "hidden": 3072, "device": "cpu"},
    {"name": "cpu-48x1024", "rows": 48, "hidden": 1024, "device": "cpu"},
    {"name": "decode-16", "rows": 16, "hidden": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "gpt2-xl-4k", "rows": 4096, "hidden": 6400, "dtype": "float16", "device": "cuda"},
    {"name": "prefill-8k", "rows": 8192, "hidden": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 29, "hidden": 1111, "device": "cpu", "held_out": True},
    {"name": "odd-bfloat16", "rows": 29, "hidden": 1111, "dtype": "bfloat16", "device": "cuda", "held_out": True},
    {"name": "odd-float16", "rows": 29, "hidden": 1111, "dtype": "float16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32"):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden)."""
        x = x + self.bias
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def get_inputs(rows=32, hidden=3072, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype)) * 2]


def get_init_inputs(hidden=3072, dtype="float32"):
    return [hidden, dtype]
