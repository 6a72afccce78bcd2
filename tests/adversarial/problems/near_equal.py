"""Elements of two tensors that are close."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 96, "width": 768},
    {"name": "h", "rows": 40, "width": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.isclose(x, y, rtol=0.3, atol=0.2)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(rows, width)]
