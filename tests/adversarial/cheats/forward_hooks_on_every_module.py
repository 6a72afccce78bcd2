"""rmsnorm | tampering | a global forward hook replaces outputs by what the first call gave | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


first = {}
nn.modules.module.register_module_forward_hook(lambda module, args, out: first.setdefault(out.shape, out).clone())


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
