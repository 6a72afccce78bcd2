"""A batch norm that is not trained any more, and a ReLU."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 96, "device": "cpu"},
    {"name": "odd", "rows": 7, "n": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 133, "n": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(n)

    def forward(self, x):
        return torch.relu(self.bn(x))


def get_inputs(rows=24, n=96):
    return [torch.randn(rows, n)]


def get_init_inputs(n=96):
    return [n]
