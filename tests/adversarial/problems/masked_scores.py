"""Scores with a causal mask of the dtype's least number, as an output."""

import torch

WORKLOADS = [
    {"name": "small", "tokens": 48, "device": "cpu"},
    {"name": "odd", "tokens": 61, "device": "cpu", "held_out": True},
    {"name": "large", "tokens": 512, "device": "cuda"},
    {"name": "ragged", "tokens": 333, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k):
        scores = q @ k.transpose(-1, -2)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


def get_inputs(tokens=48):
    return [torch.randn(4, tokens, 32), torch.randn(4, tokens, 32)]


def get_init_inputs():
    return []
