"""A filter in the domain of frequencies."""

import torch
import torch.nn as nn

WORKLOADS = [{"name": "a", "rows": 128}, {"name": "b", "rows": 96}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(129, dtype=torch.complex64))
        self.g = nn.Parameter(torch.ones(256))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.w, n=256) * self.g


def get_inputs(rows=128):
    return [torch.randn(rows, 256)]


def get_init_inputs():
    return []
