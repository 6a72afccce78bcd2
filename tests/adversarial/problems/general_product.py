"""silu(x) * y for any sizes and strides."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "base", "rows": 64, "width": 256, "device": "cpu"},
    {"name": "long", "rows": 48, "width": 500, "device": "cpu"},
    {"name": "large", "rows": 2048, "width": 1024, "device": "cuda"},
    {"name": "wide", "rows": 1024, "width": 3000, "device": "cuda"},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x * torch.sigmoid(x) * y


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(rows, width)]
