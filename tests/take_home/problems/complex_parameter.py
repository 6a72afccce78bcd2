"""A spectrum times a learnt one, with an input without dimensions."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(16, dtype=torch.complex64))

    def forward(self, x, scale):
        return torch.fft.fft(x) * self.filter * scale


def get_inputs(rows=8):
    return [torch.randn(rows, 16, dtype=torch.complex64), torch.rand(())]
