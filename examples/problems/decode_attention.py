"""Attention of one new token over a key-value cache with grouped heads, written with repeat_interleave and matmul."""

import math

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-1x1k", "batch": 1, "heads": 8, "kv_heads": 2, "length": 1024, "device": "cpu"},
    {"name": "cpu-4x300", "batch": 4, "heads": 8, "kv_heads": 4, "length": 300, "device": "cpu"},
    {"name": "b1-8k", "batch": 1, "heads": 32, "kv_heads": 8, "length": 8192, "dtype": "bfloat16", "device": "cuda"},
    {"name": "b16-2k", "batch": 16, "heads": 32, "kv_heads": 8, "length": 2048, "dtype": "bfloat16", "device": "cuda"},
    {"name": "b64-1k", "batch": 64, "heads": 32, "kv_heads": 8, "length": 1024, "dtype": "float16", "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 6, "kv_heads": 3, "length": 151, "device": "cpu", "held_out": True},
    {
        "name": "odd-bfloat16",
        "batch": 3,
        "heads": 6,
        "kv_heads": 3,
        "length": 151,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
    {
        "name": "odd-float16",
        "batch": 3,
        "heads": 6,
        "kv_heads": 3,
        "length": 151,
        "dtype": "float16",
        "device": "cuda",
        "held_out": True,
    },
]

HEAD_DIM = 64


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, 1, 64); k and v (batch, kv_heads, length, 64); heads is a multiple of kv_heads."""
        group = q.shape[1] // k.shape[1]
        k = k.repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        probabilities = torch.softmax(scores.float(), dim=-1).to(q.dtype)
        return torch.matmul(probabilities, v)


def get_inputs(batch=1, heads=8, kv_heads=2, length=1024, dtype="float32"):
    kind = getattr(torch, dtype)
    q = torch.randn(batch, heads, 1, HEAD_DIM, dtype=kind) * 2
    k = torch.randn(batch, kv_heads, length, HEAD_DIM, dtype=kind)
    v = torch.randn(batch, kv_heads, length, HEAD_DIM, dtype=kind)
    return [q, k, v]
