"""Attention of one new token over DeepSeek's latent cache: all heads share it, and its first 512 columns are values."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b1_h128", "batch": 1, "heads": 128, "length": 4096, "device": "cuda"},
    {"name": "b16_h128", "batch": 16, "heads": 128, "length": 4096, "device": "cuda"},
    {"name": "b16_h16", "batch": 16, "heads": 16, "length": 4096, "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 5, "length": 411, "device": "cuda", "held_out": True},
]
LATENT, ROPE = 512, 64
SCALE = 192**-0.5


class Model(nn.Module):
    def forward(self, q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, 576), cache (batch, length, 576), to (batch, heads, 512)."""
        scores = torch.matmul(q, cache.transpose(1, 2)).float() * SCALE
        return torch.matmul(torch.softmax(scores, -1).to(q.dtype), cache[..., :LATENT])


def get_inputs(batch=1, heads=128, length=4096):
    q = torch.randn(batch, heads, LATENT + ROPE, dtype=torch.bfloat16)
    return [q, torch.randn(batch, length, LATENT + ROPE, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
