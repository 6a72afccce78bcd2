"""Causal attention in float16, written out: large scores overflow before the softmax."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 1, "heads": 2, "length": 64, "device": "cpu"},
    {"name": "odd", "batch": 1, "heads": 1, "length": 37, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 2, "heads": 12, "length": 1024, "device": "cuda"},
    {"name": "ragged", "batch": 1, "heads": 3, "length": 389, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)).float() / 8
        length = q.shape[2]
        above = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        return torch.matmul(torch.softmax(scores.masked_fill(above, float("-inf")), -1).to(q.dtype), v)


def get_inputs(batch=1, heads=2, length=64):
    return [torch.randn(batch, heads, length, 64, dtype=torch.float16) for _ in range(3)]
