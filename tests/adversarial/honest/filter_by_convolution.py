"""causal_filter | odd but legal | a padded convolution of every channel, which reads no step from the future | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.taps = nn.Parameter(torch.randn(channels, length) / length**0.5)
        self.skip = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        n = x.shape[-1]
        y = torch.zeros_like(x)
        for step in range(n):
            y[..., step:] += x[..., step, None] * self.taps[:, : n - step]
        return y + x * self.skip[:, None]
