"""The spectrum of a sequence, and its tokens mixed by a Fourier transform as FNet does."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "length": 64, "device": "cpu"},
    {"name": "odd", "batch": 3, "length": 45, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 16, "length": 256, "device": "cuda"},
    {"name": "ragged", "batch": 5, "length": 100, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x, dim=1), torch.fft.fft(x, dim=1).real


def get_inputs(batch=4, length=64):
    return [torch.randn(batch, length, 48)]


def get_init_inputs():
    return []
