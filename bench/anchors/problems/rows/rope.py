"""Rotary position embedding of queries and keys in the half-rotation form; all sequences share the angles."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "4x(32+8)x2048x128", "batch": 4, "heads": 32, "kv_heads": 8, "length": 2048, "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 6, "kv_heads": 3, "length": 41, "device": "cuda", "held_out": True},
]
HEAD_DIM = 128


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        """q (batch, heads, length, 128), k (batch, kv_heads, length, 128), cos and sin (length, 128)."""
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def get_inputs(batch=1, heads=4, kv_heads=2, length=32):
    frequencies = 500000.0 ** -(torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)
    angles = torch.arange(length).float().view(length, 1) * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    q = torch.randn(batch, heads, length, HEAD_DIM, dtype=torch.bfloat16)
    k = torch.randn(batch, kv_heads, length, HEAD_DIM, dtype=torch.bfloat16)
    return [q, k, angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)]
