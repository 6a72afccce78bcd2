"""rmsnorm | odd but legal | forward pre-hooks and hooks that change nothing | PASSED | cpu"""

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
        self.register_forward_pre_hook(lambda module, args: (args[0].contiguous(),))
        self.register_forward_hook(lambda module, args, output: output.contiguous())

    def forward(self, x):
        return right(x, self.weight, self.eps)
