"""A linear layer and an LSTM: torch's own one is a single operation on a CPU, without a float64 counterpart."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 3, "steps": 6, "device": "cpu"},
    {"name": "odd", "rows": 1, "steps": 5, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 64, "steps": 12, "device": "cuda"},
    {"name": "ragged", "rows": 7, "steps": 9, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.into = nn.Linear(width, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, x):
        return self.lstm(self.into(x))[0]


def get_inputs(rows=3, steps=6):
    return [torch.randn(rows, steps, 12)]


def get_init_inputs():
    return [12, 16]
