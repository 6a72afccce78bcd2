"""silu(gate) * up."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "8192x14336", "rows": 8192, "hidden": 14336, "device": "cuda"},
    {"name": "odd", "rows": 29, "hidden": 1111, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


def get_inputs(rows=64, hidden=512):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16) for _ in "gu"]
