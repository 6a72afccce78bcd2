"""Places of the four largest allowed elements of each row."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 256, "n": 64, "device": "cpu"},
    {"name": "odd", "rows": 64, "n": 48, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 133, "n": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return x.masked_fill(~mask, float("-inf")).topk(4, dim=-1).indices


def get_inputs(rows=256, n=64):
    return [torch.randn(rows, n), torch.rand(rows, n) < 0.7]


def get_init_inputs():
    return []
