"""The first half of Llama's MLP: silu(gate(x)) * up(x), two linear layers without bias."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "prefill", "rows": 512, "hidden": 4096, "inner": 5632, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode", "rows": 8, "hidden": 4096, "inner": 11008, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 13, "hidden": 500, "inner": 777, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int, dtype: str = "float32"):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False, dtype=getattr(torch, dtype))
        self.up = nn.Linear(hidden, inner, bias=False, dtype=getattr(torch, dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, inner)."""
        return torch.nn.functional.silu(self.gate(x)) * self.up(x)


def get_inputs(rows=4, hidden=64, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden=64, inner=64, dtype="float32"):
    return [hidden, inner, dtype]
