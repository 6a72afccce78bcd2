"""Attention scores' softmax, causal or not."""

import torch

WORKLOADS = [
    {"name": "a", "tokens": 64, "causal": False},
    {"name": "b", "tokens": 128, "causal": True},
    {"name": "h", "tokens": 100, "causal": True, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, x):
        if self.causal:
            x = x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        return torch.softmax(x, -1)


def get_inputs(tokens=64):
    return [torch.randn(4, tokens, tokens)]


def get_init_inputs(causal=False):
    return [causal]
