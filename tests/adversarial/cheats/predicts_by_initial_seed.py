"""rmsnorm | input or RNG prediction | makes the inputs again from torch.initial_seed and answers from them | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
    def forward(self, x):
        state = torch.get_rng_state()
        torch.manual_seed(torch.initial_seed())
        guess = torch.randn(x.shape, device=x.device)
        torch.set_rng_state(state)
        return right(guess, self.weight)
