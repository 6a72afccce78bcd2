"""Causal linear attention: products of positive features instead of a softmax."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 2, "length": 96, "device": "cpu"},
    {"name": "odd", "batch": 1, "length": 61, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 4, "length": 1024, "device": "cuda"},
    {"name": "ragged", "batch": 3, "length": 301, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        scores = torch.matmul(q, k.transpose(-2, -1)).tril()
        return torch.matmul(scores, v) / (scores.sum(-1, keepdim=True) + 1e-6)


def get_inputs(batch=2, length=96):
    return [torch.randn(batch, length, 32) for _ in range(3)]


def get_init_inputs():
    return []
