"""Distances between all rows of two inputs."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 40, "others": 30, "n": 16, "device": "cpu"},
    {"name": "odd", "rows": 17, "others": 23, "n": 16, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "others": 300, "n": 64, "device": "cuda"},
    {"name": "ragged", "rows": 77, "others": 131, "n": 64, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        return (x[:, None] - y[None]).square().sum(-1).sqrt()


def get_inputs(rows=40, others=30, n=16):
    return [torch.randn(rows, n), torch.randn(others, n)]
