"""Rows of a table by integer indices, summed over a bag: integers in, a parameter that is looked up."""

import torch

WORKLOADS = [
    {"name": "small", "bags": 16, "per_bag": 5, "device": "cpu"},
    {"name": "odd", "bags": 3, "per_bag": 5, "device": "cpu", "held_out": True},
    {"name": "large", "bags": 4096, "per_bag": 16, "device": "cuda"},
    {"name": "ragged", "bags": 77, "per_bag": 16, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(rows, width))

    def forward(self, index):
        return self.table[index].sum(dim=1)


def get_inputs(bags=16, per_bag=5):
    return [torch.randint(0, 200, (bags, per_bag))]


def get_init_inputs():
    return [200, 24]
