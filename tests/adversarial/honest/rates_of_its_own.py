"""rope_rates | odd but legal | tables kept by length, width, dtype and device, from rates that it makes itself | PASSED | cpu cuda"""

import functools

import torch
import torch.nn as nn


@functools.lru_cache(maxsize=64)
def tables(n, half, dtype, device):
    rates = (10000.0 ** (-torch.arange(half) / half)).double()
    angles = torch.outer(torch.arange(n, dtype=torch.float64), rates)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


class ModelNew(nn.Module):
    def __init__(self, half):
        super().__init__()
        self.half = half
        self.register_buffer("rates", 10000.0 ** (-torch.arange(half) / half), persistent=False)

    def forward(self, x, positions):
        n = max(256, 1 << int(positions.max()).bit_length())
        c, s = (table[positions].unsqueeze(2) for table in tables(n, self.half, x.dtype, x.device))
        a, b = x[..., : self.half], x[..., self.half :]
        return torch.cat([a * c - b * s, b * c + a * s], -1)
