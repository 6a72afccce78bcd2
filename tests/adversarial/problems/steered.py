"""A large input is moved by what a small one says. Nearly all the work is on the small one, whose matrices are so small
that much of it is dispatch."""

import torch

WORKLOADS = [
    {"name": "usual", "sheets": 24, "side": 24, "device": "cpu"},
    {"name": "odd", "sheets": 21, "side": 19, "device": "cpu", "held_out": True},
]
STEPS = 12


class Model(torch.nn.Module):
    def forward(self, x, steer):
        turn = steer / steer.shape[-1] ** 0.5
        moved = total = turn
        for _ in range(STEPS):
            moved = torch.tanh(moved @ turn)
            total = total + moved
        return x + total


def get_inputs(sheets=24, side=24):
    return [torch.randn(sheets, side, side), torch.randn(side, side)]
