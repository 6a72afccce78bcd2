"""x times the sigmoid of a row, for any sizes and strides."""

import torch

DOMAIN = "general"
WORKLOADS = [{"name": "a", "rows": 256, "cols": 512}, {"name": "b", "rows": 192, "cols": 640}]


def reference(x, g):
    return x * torch.sigmoid(g)


def get_inputs(rows=256, cols=512):
    return [torch.randn(rows, cols), torch.randn(cols)]
