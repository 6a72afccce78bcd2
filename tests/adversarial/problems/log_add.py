"""Sum of two weights in log space, as one step of an HMM's forward pass or CTC makes it."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 96, "width": 768},
    {"name": "h", "rows": 40, "width": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.logaddexp(a, b)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width) * 4 - 8, torch.randn(rows, width) * 4 - 8]
