"""x plus a bias of each column, then ReLU squared, any strides."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 48, "width": 500},
]


class Model(torch.nn.Module):
    def forward(self, x, bias):
        return torch.relu(x + bias).square()


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(width)]
