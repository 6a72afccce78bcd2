"""Attention of one query over keys that are stored transposed, as in Mirage's first example; float16, no scale."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "fp16", "batch": 2, "heads": 32, "length": 4096, "device": "cuda"},
    {"name": "odd", "batch": 1, "heads": 5, "length": 411, "device": "cuda", "held_out": True},
]
HEAD_DIM = 128


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, 1, 128), k (batch, heads, 128, length), v (batch, heads, length, 128)."""
        return torch.matmul(torch.softmax(torch.matmul(q, k), -1), v)


def get_inputs(batch=2, heads=32, length=4096):
    q = torch.randn(batch, heads, 1, HEAD_DIM, dtype=torch.float16) * 0.1
    k = torch.randn(batch, heads, HEAD_DIM, length, dtype=torch.float16)
    return [q, k, torch.randn(batch, heads, length, HEAD_DIM, dtype=torch.float16)]


def get_init_inputs():
    return []
