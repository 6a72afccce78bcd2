"""Attention of a few new tokens over a long cache, with layer normalisation of queries and keys (Mirage's form)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "q1", "batch": 2, "heads": 32, "queries": 1, "length": 4096, "device": "cuda"},
    {"name": "q8", "batch": 2, "heads": 32, "queries": 8, "length": 4096, "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 5, "queries": 3, "length": 411, "device": "cuda", "held_out": True},
]
WIDTH = 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_weight = nn.Parameter(torch.ones(WIDTH, dtype=torch.bfloat16))
        self.k_weight = nn.Parameter(torch.ones(WIDTH, dtype=torch.bfloat16))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, queries, 128); k and v (batch, heads, length, 128)."""
        q = F.layer_norm(q, (WIDTH,), self.q_weight)
        k = F.layer_norm(k, (WIDTH,), self.k_weight)
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs(batch=1, heads=4, queries=1, length=512):
    q = torch.randn(batch, heads, queries, WIDTH, dtype=torch.bfloat16)
    k = torch.randn(batch, heads, length, WIDTH, dtype=torch.bfloat16)
    return [q, k, torch.randn(batch, heads, length, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
