"""Scores with a causal mask of -1e9, as an output."""

import torch

WORKLOADS = [
    {"name": "small", "tokens": 48, "device": "cpu"},
    {"name": "odd", "tokens": 61, "device": "cpu", "held_out": True},
    {"name": "large", "tokens": 512, "device": "cuda"},
    {"name": "ragged", "tokens": 333, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k):
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).triu(1)
        return (q @ k.transpose(-1, -2)).masked_fill(mask, -1e9)


def get_inputs(tokens=48):
    return [torch.randn(4, tokens, 32), torch.randn(4, tokens, 32)]


def get_init_inputs():
    return []
