"""Sixteen steps of an LSTM cell, written out; returns the state of every step."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "16steps_b10_h256", "batch": 10, "hidden": 256, "device": "cuda"},
    {"name": "odd", "batch": 3, "hidden": 100, "device": "cuda", "held_out": True},
]
STEPS, FEATURES = 16, 128


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = nn.Linear(hidden, 4 * hidden, bias=False)
        self.inputs = nn.Linear(FEATURES, 4 * hidden)

    def forward(self, x, h, c):
        """x (16, batch, 128), h and c (batch, hidden)."""
        states = []
        for step in range(STEPS):
            gates = self.inputs(x[step]) + self.hidden(h)
            i, f, g, o = gates.chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states)


def get_inputs(batch=2, hidden=16):
    x = torch.randn(STEPS, batch, FEATURES)
    return [x, torch.randn(batch, hidden), torch.randn(batch, hidden)]


def get_init_inputs(hidden=16):
    return [hidden]
