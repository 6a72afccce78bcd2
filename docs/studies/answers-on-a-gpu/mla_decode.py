"""Multi-head latent attention of one new token over a compressed cache, with absorbed projections (DeepSeek's form)."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "b1-h128", "batch": 1, "heads": 128, "length": 4096, "device": "cuda"},
    {"name": "b16-h128", "batch": 16, "heads": 128, "length": 4096, "device": "cuda"},
    {"name": "b16-h16", "batch": 16, "heads": 16, "length": 4096, "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 5, "length": 411, "device": "cuda", "held_out": True},
]
LATENT = 512
ROPE = 64
SCALE = (128 + ROPE) ** -0.5


class Model(nn.Module):
    def forward(self, q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """q (batch, heads, 576), cache (batch, length, 576): 512 keys that are the values too, 64 more."""
        scores = torch.matmul(q, cache.transpose(1, 2)) * SCALE
        probabilities = torch.softmax(scores.float(), dim=-1).to(q.dtype)
        return torch.matmul(probabilities, cache[..., :LATENT])


def get_inputs(batch=1, heads=16, length=512):
    q = torch.randn(batch, heads, LATENT + ROPE, dtype=torch.bfloat16)
    return [q, torch.randn(batch, length, LATENT + ROPE, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
