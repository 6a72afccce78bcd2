"""A long causal filter by Fourier transforms, with a skip: a NaN spreads to steps that do not depend on it."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 2, "channels": 16, "length": 128, "device": "cpu"},
    {"name": "odd", "batch": 3, "channels": 5, "length": 77, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 8, "channels": 64, "length": 512, "device": "cuda"},
    {"name": "ragged", "batch": 3, "channels": 5, "length": 177, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.taps = nn.Parameter(torch.randn(channels, length) / length**0.5)
        self.skip = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        n = x.shape[-1]
        y = torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(self.taps, n=2 * n), n=2 * n)[..., :n]
        return y + x * self.skip[:, None]


def get_inputs(batch=2, channels=16, length=128):
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels=16, length=128):
    return [channels, length]
