"""Greedy decoding: the most likely word, of scores in bfloat16, where many are equal."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "hidden": 32, "words": 500, "device": "cpu"},
    {"name": "odd", "rows": 13, "hidden": 24, "words": 333, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 256, "hidden": 1024, "words": 32000, "device": "cuda"},
    {"name": "ragged", "rows": 33, "hidden": 640, "words": 10007, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, hidden, words):
        super().__init__()
        self.head = torch.nn.Linear(hidden, words, bias=False).bfloat16()

    def forward(self, x):
        return self.head(x).argmax(-1)


def get_inputs(rows=64, hidden=32):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=32, words=500):
    return [hidden, words]
