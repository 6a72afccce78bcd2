"""One query's attention over the tokens that a drawn mask allows."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 24, "length": 256, "dim": 32, "device": "cpu"},
    {"name": "odd", "batch": 9, "length": 173, "dim": 24, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 256, "length": 1024, "dim": 128, "device": "cuda"},
    {"name": "ragged", "batch": 37, "length": 777, "dim": 96, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v, mask):
        scores = torch.einsum("bd,bld->bl", q, k) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return torch.einsum("bl,bld->bd", weights, v)


def get_inputs(batch=24, length=256, dim=32):
    q, k, v = torch.randn(batch, dim), torch.randn(batch, length, dim), torch.randn(batch, length, dim)
    return [q, k, v, torch.rand(batch, length) < 0.8]


def get_init_inputs():
    return []
