"""rmsnorm | odd but legal | chooses its forward when it is made, and overrides __call__ | PASSED | cpu"""

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
        self.forward = self.fast if hidden % 2 == 0 else self.slow

    def fast(self, x):
        return right(x, self.weight, self.eps)

    def slow(self, x):
        return right(x, self.weight, self.eps)

    def __call__(self, *args):
        return self.forward(*args)
