"""A causal filter as long as the sequence, by Fourier transforms: an infinity becomes NaN everywhere in its row."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 3, "length": 96, "device": "cpu"},
    {"name": "odd", "batch": 2, "length": 51, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 8, "length": 1024, "device": "cuda"},
    {"name": "ragged", "batch": 3, "length": 389, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, taps):
        n = x.shape[-1]
        product = torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(taps, n=2 * n)
        return torch.fft.irfft(product, n=2 * n)[..., :n]


def get_inputs(batch=3, length=96):
    return [torch.randn(batch, 24, length), torch.randn(24, length) / length**0.5]


def get_init_inputs():
    return []
