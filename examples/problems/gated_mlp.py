"""Llama's gated MLP for decoding: down(silu(gate(x)) * up(x)), three linear layers without bias."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-1", "rows": 1, "hidden": 512, "inner": 1408, "device": "cpu"},
    {"name": "cpu-4", "rows": 4, "hidden": 384, "inner": 1024, "device": "cpu"},
    {"name": "decode-1", "rows": 1, "hidden": 4096, "inner": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode-8", "rows": 8, "hidden": 4096, "inner": 11008, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode-16", "rows": 16, "hidden": 2048, "inner": 8192, "dtype": "float16", "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 250, "inner": 611, "device": "cpu", "held_out": True},
    {
        "name": "odd-bfloat16",
        "rows": 3,
        "hidden": 250,
        "inner": 611,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
    {
        "name": "odd-float16",
        "rows": 3,
        "hidden": 250,
        "inner": 611,
        "dtype": "float16",
        "device": "cuda",
        "held_out": True,
    },
]


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int, dtype: str = "float32"):
        super().__init__()
        kind = getattr(torch, dtype)
        self.gate = nn.Linear(hidden, inner, bias=False, dtype=kind)
        self.up = nn.Linear(hidden, inner, bias=False, dtype=kind)
        self.down = nn.Linear(inner, hidden, bias=False, dtype=kind)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, hidden)."""
        gate = self.gate(x)
        return self.down(gate * torch.sigmoid(gate) * self.up(x))


def get_inputs(rows=1, hidden=512, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden=512, inner=1408, dtype="float32"):
    return [hidden, inner, dtype]
