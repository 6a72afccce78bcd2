"""Batch norm over channels of long sequences, in training."""

import torch

WORKLOADS = [
    {"name": "a", "batch": 8, "length": 64},
    {"name": "b", "batch": 16, "length": 100},
    {"name": "h", "batch": 5, "length": 77, "held_out": True},
]
TRAIN = True


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(24)

    def forward(self, x):
        return self.bn(x)


def get_inputs(batch=8, length=64):
    return [torch.randn(batch, 24, length)]
