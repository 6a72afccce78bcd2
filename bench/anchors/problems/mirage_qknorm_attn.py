"""Attention over a long cache with normalised queries and keys, as in Mirage's QK-norm benchmark."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "q1", "queries": 1, "length": 4096, "batch": 2, "heads": 32, "device": "cuda"},
    {"name": "q8", "queries": 8, "length": 4096, "batch": 2, "heads": 32, "device": "cuda"},
    {"name": "odd", "queries": 3, "length": 411, "batch": 1, "heads": 5, "device": "cuda", "held_out": True},
]
HEAD_DIM = 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_weight = nn.Parameter(torch.ones(HEAD_DIM, dtype=torch.bfloat16))
        self.k_weight = nn.Parameter(torch.ones(HEAD_DIM, dtype=torch.bfloat16))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, queries, 128), k and v (batch, heads, length, 128)."""
        q = F.layer_norm(q, q.shape[-1:], self.q_weight)
        k = F.layer_norm(k, k.shape[-1:], self.k_weight)
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs(queries=1, length=4096, batch=2, heads=32):
    q = torch.randn(batch, heads, queries, HEAD_DIM, dtype=torch.bfloat16)
    k, v = (torch.randn(batch, heads, length, HEAD_DIM, dtype=torch.bfloat16) for _ in "kv")
    return [q, k, v]


def get_init_inputs():
    return []
