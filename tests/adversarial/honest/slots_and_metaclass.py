"""rmsnorm | odd but legal | a mixin, a metaclass and a forward that is bound late | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class Meta(type(nn.Module)):
    def __new__(meta, name, bases, body):
        made = super().__new__(meta, name, bases, body)
        made.made_by = meta
        return made


class Mixin:
    def normalise(self, x):
        return right(x, self.weight)


class ModelNew(Mixin, Base, metaclass=Meta):
    forward = Mixin.normalise
