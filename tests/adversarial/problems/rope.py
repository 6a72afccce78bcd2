"""Rotary embedding of half and half, tables given."""

import torch

WORKLOADS = [
    {"name": "a", "tokens": 64, "heads": 4, "dim": 64},
    {"name": "b", "tokens": 128, "heads": 4, "dim": 128},
    {"name": "h", "tokens": 50, "heads": 4, "dim": 96, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        c, s = cos.unsqueeze(1), sin.unsqueeze(1)
        return torch.cat([a * c - b * s, b * c + a * s], -1)


def get_inputs(tokens=64, heads=4, dim=64):
    assert dim % 2 == 0
    t = torch.randn(tokens, dim // 2)
    return [torch.randn(tokens, heads, dim), t.cos(), t.sin()]
