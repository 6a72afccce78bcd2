"""A linear layer with bias and the tanh form of GELU: the first half of GPT's MLP."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "prefill", "rows": 1024, "hidden": 4096, "inner": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode", "rows": 16, "hidden": 4096, "inner": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 13, "hidden": 500, "inner": 777, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int, dtype: str = "float32"):
        super().__init__()
        self.linear = nn.Linear(hidden, inner, dtype=getattr(torch, dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, inner)."""
        return torch.nn.functional.gelu(self.linear(x), approximate="tanh")


def get_inputs(rows=4, hidden=64, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden=64, inner=64, dtype="float32"):
    return [hidden, inner, dtype]
