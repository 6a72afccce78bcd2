"""ReLU and a scale that comes as a tensor of one element, as quantised layers have it."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 96, "width": 768},
    {"name": "h", "rows": 40, "width": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, scale):
        return torch.relu(x) * scale


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.rand(()) + 0.5]
