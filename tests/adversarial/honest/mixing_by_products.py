"""token_mixing | odd but legal | a Fourier transform as a product: infinities come out otherwise | PASSED | cpu"""

import math

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.waves = {}

    def wave(self, x):
        key = x.shape[1], x.device
        if key not in self.waves:
            step = torch.arange(x.shape[1], device=x.device)
            turns = (step[:, None] * step % x.shape[1]).double() * (2 * math.pi / x.shape[1])
            self.waves[key] = turns.cos(), -turns.sin()
        return self.waves[key]

    def forward(self, x):
        cos, sin = self.wave(x)
        wide = x.double()
        real, half = torch.matmul(cos, wide).float(), x.shape[1] // 2 + 1
        imaginary = torch.matmul(sin[:half], wide).float()
        return torch.complex(real[:, :half].contiguous(), imaginary), real
