"""rmsnorm | input or RNG prediction | draws what it hopes to be given when it is constructed | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class ModelNew(Base):
    def __init__(self, hidden, eps=1e-6):
        super().__init__(hidden, eps)
        self.guesses = [torch.randn(24, hidden) for _ in range(4)]

    def forward(self, x):
        for guess in self.guesses:
            if guess.shape == x.shape and guess[0, 0] == x[0, 0].cpu():
                return self.answers[guess]
        return torch.zeros_like(x)
