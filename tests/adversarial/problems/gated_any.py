"""silu(x) * y for any sizes and strides."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 48, "width": 500},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x * torch.sigmoid(x) * y


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(rows, width)]
