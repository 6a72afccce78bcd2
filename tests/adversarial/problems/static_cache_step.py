"""One step of attention over a cache of keys and values."""

import torch

WORKLOADS = [
    {"name": "short", "batch": 8, "tokens": 64, "device": "cpu"},
    {"name": "long", "batch": 16, "tokens": 512, "device": "cpu"},
    {"name": "odd", "batch": 5, "tokens": 100, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        scores = (q.unsqueeze(1) @ k.transpose(1, 2)) * 0.125
        return (torch.softmax(scores, -1) @ v).squeeze(1)


def get_inputs(batch=8, tokens=64):
    return [torch.randn(batch, 64), torch.randn(batch, tokens, 64), torch.randn(batch, tokens, 64)]
