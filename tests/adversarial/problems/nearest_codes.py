"""Vector quantisation: every row's nearest code, of which only the code itself is returned, and how far it is."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 512, "codes": 128, "width": 16, "device": "cpu"},
    {"name": "odd", "rows": 67, "codes": 60, "width": 12, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 16384, "codes": 1024, "width": 64, "device": "cuda"},
    {"name": "ragged", "rows": 1001, "codes": 500, "width": 48, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codes = torch.nn.Parameter(torch.randn(codes, width))

    def forward(self, x):
        distances = x.pow(2).sum(-1, keepdim=True) - 2 * x @ self.codes.t() + self.codes.pow(2).sum(-1)
        nearest = self.codes[distances.argmin(-1)]
        return nearest, (nearest - x).pow(2).mean()


def get_inputs(rows=512, width=16):
    return [torch.randn(rows, width)]


def get_init_inputs(codes=128, width=16):
    return [codes, width]
