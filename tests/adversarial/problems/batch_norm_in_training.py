"""A batch norm in training: outputs depend on the batch alone, and every call moves the running statistics."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 16, "channels": 32, "device": "cpu"},
    {"name": "odd", "rows": 5, "channels": 32, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "channels": 512, "device": "cuda"},
    {"name": "ragged", "rows": 77, "channels": 512, "device": "cuda", "held_out": True},
]
TRAIN = True


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(channels)

    def forward(self, x):
        return self.bn(x)


def get_inputs(rows=16, channels=32):
    return [torch.randn(rows, channels)]


def get_init_inputs(channels=32):
    return [channels]
