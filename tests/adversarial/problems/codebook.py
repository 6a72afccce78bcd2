"""Distances to a codebook that lies in a buffer, as where it is kept by moving averages."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 64, "width": 32, "codes": 128, "device": "cpu"},
    {"name": "long", "rows": 256, "width": 32, "codes": 128, "device": "cpu"},
    {"name": "held", "rows": 99, "width": 32, "codes": 128, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 64, "codes": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 64, "codes": 1024, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width=32, codes=128):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))

    def forward(self, x):
        return torch.softmax(-torch.cdist(x, self.codes, compute_mode="donot_use_mm_for_euclid_dist"), -1)


def get_inputs(rows=64, width=32, codes=128):
    return [torch.randn(rows, width)]


def get_init_inputs(width=32, codes=128):
    return [width, codes]
