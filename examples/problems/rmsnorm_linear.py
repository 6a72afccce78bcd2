"""RMSNorm followed by a linear layer without bias: the entry of an attention or MLP block."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-1x1024", "rows": 1, "hidden": 1024, "out": 2048, "device": "cpu"},
    {"name": "cpu-8x768", "rows": 8, "hidden": 768, "out": 768, "device": "cpu"},
    {"name": "decode-1", "rows": 1, "hidden": 4096, "out": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode-8", "rows": 8, "hidden": 4096, "out": 6144, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode-16", "rows": 16, "hidden": 4096, "out": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 3, "hidden": 500, "out": 777, "device": "cpu", "held_out": True},
    {"name": "odd-cuda", "rows": 3, "hidden": 500, "out": 777, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, out: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = nn.Parameter(torch.ones(hidden, dtype=kind))
        self.linear = nn.Linear(hidden, out, bias=False, dtype=kind)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden) to (rows, out)."""
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return self.linear(self.weight * h.to(x.dtype))


def get_inputs(rows=1, hidden=1024, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden=1024, out=2048, dtype="float32"):
    return [hidden, out, dtype]
