"""Rotary position embedding of queries and keys, the half-rotation form of Llama."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-128", "batch": 1, "heads": 8, "kv_heads": 2, "length": 128, "device": "cpu"},
    {"name": "cpu-96", "batch": 2, "heads": 4, "kv_heads": 4, "length": 96, "device": "cpu"},
    {"name": "decode-64", "batch": 64, "heads": 32, "kv_heads": 8, "length": 1, "dtype": "bfloat16", "device": "cuda"},
    {"name": "4x2k", "batch": 4, "heads": 32, "kv_heads": 8, "length": 2048, "dtype": "bfloat16", "device": "cuda"},
    {"name": "1x8k", "batch": 1, "heads": 32, "kv_heads": 8, "length": 8192, "dtype": "float16", "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 6, "kv_heads": 3, "length": 41, "device": "cpu", "held_out": True},
    {
        "name": "odd-bfloat16",
        "batch": 3,
        "heads": 6,
        "kv_heads": 3,
        "length": 41,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
    {
        "name": "odd-float16",
        "batch": 3,
        "heads": 6,
        "kv_heads": 3,
        "length": 41,
        "dtype": "float16",
        "device": "cuda",
        "held_out": True,
    },
]

HEAD_DIM = 128


class Model(nn.Module):
    def rotate_half(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), dim=-1)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """q (batch, heads, length, 128), k (batch, kv_heads, length, 128); cos and sin (batch, length, 128)."""
        cos = cos.unsqueeze(1)
        sin = sin.unsqueeze(1)
        return q * cos + self.rotate_half(q) * sin, k * cos + self.rotate_half(k) * sin


def get_inputs(batch=1, heads=8, kv_heads=2, length=128, dtype="float32"):
    kind = getattr(torch, dtype)
    frequencies = 1.0 / (500000.0 ** (torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM))
    first = torch.randint(0, 4096, (batch, 1, 1)).float()  # each sequence of a batch is somewhere else
    angles = (first + torch.arange(length).float().view(1, length, 1)) * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    q = torch.randn(batch, heads, length, HEAD_DIM, dtype=kind)
    k = torch.randn(batch, kv_heads, length, HEAD_DIM, dtype=kind)
    return [q, k, angles.cos().to(kind), angles.sin().to(kind)]
