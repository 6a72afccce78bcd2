"""LayerNorm over the last dimension, written out step by step as in the paper."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-256x768", "rows": 256, "hidden": 768, "device": "cpu"},
    {"name": "cpu-128x2048", "rows": 128, "hidden": 2048, "device": "cpu"},
    {"name": "bert-4k", "rows": 4096, "hidden": 1024, "dtype": "float16", "device": "cuda"},
    {"name": "gpt-4k", "rows": 4096, "hidden": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "gpt-8k", "rows": 8192, "hidden": 8192, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 101, "hidden": 999, "device": "cpu", "held_out": True},
    {"name": "odd-float16", "rows": 101, "hidden": 999, "dtype": "float16", "device": "cuda", "held_out": True},
    {"name": "odd-bfloat16", "rows": 101, "hidden": 999, "dtype": "bfloat16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-5):
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = nn.Parameter(torch.ones(hidden, dtype=kind))
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=kind))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, hidden); statistics in float32, whatever x is."""
        h = x.float()
        mean = h.mean(dim=-1, keepdim=True)
        centred = h - mean
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        h = centred * torch.rsqrt(variance + self.eps)
        return h.to(x.dtype) * self.weight + self.bias


def get_inputs(rows=256, hidden=768, dtype="float32"):
    return [torch.randn(rows, hidden, dtype=getattr(torch, dtype)) * 2 + 0.5]


def get_init_inputs(hidden=768, dtype="float32"):
    return [hidden, dtype]
