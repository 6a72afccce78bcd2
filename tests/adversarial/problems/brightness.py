"""Sum of the bytes of each line of a picture."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 64, "width": 192, "device": "cpu"},
    {"name": "more", "rows": 256, "width": 208, "device": "cpu"},
    {"name": "held", "rows": 100, "width": 200, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 256, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 250, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(-1).float() / x.shape[-1]


def get_inputs(rows=64, width=192):
    return [torch.randint(0, 256, (rows, width), dtype=torch.uint8)]
