"""Add a residual, then RMSNorm: what every Llama-like block does twice per layer."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-128x2048", "rows": 128, "hidden": 2048, "device": "cpu"},
    {"name": "cpu-300x1024", "rows": 300, "hidden": 1024, "device": "cpu"},
    {"name": "decode-16", "rows": 16, "hidden": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "prefill-4k", "rows": 4096, "hidden": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "prefill-8k", "rows": 8192, "hidden": 8192, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 133, "hidden": 1000, "device": "cpu", "held_out": True},
    {"name": "few-rows", "rows": 3, "hidden": 5120, "device": "cpu", "held_out": True},
    {"name": "odd-cuda", "rows": 133, "hidden": 1000, "dtype": "bfloat16", "device": "cuda", "held_out": True},
    {"name": "few-rows-cuda", "rows": 3, "hidden": 5120, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x and residual (rows, hidden). Returns the normalised sum and the sum, which the next block adds to."""
        residual = x + residual
        h = residual.float()
        variance = h.pow(2).mean(dim=-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.eps)
        return self.weight * h.to(x.dtype), residual


def get_inputs(rows=128, hidden=2048, dtype="float32"):
    kind = getattr(torch, dtype)
    return [torch.randn(rows, hidden, dtype=kind), torch.randn(rows, hidden, dtype=kind)]


def get_init_inputs(hidden=2048, dtype="float32"):
    return [hidden, dtype]
