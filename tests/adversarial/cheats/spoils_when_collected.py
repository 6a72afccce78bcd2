"""rmsnorm | tampering | gc callbacks that overwrite old answers | INCORRECT_VALUES NONDETERMINISTIC TRUE_TIME | cpu"""

import gc

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


answers = []


def spoil(phase, info):
    for y in answers[:-1]:
        y.zero_()
    del answers[:-1]


gc.callbacks.append(spoil)


class ModelNew(Base):
    def forward(self, x):
        y = right(x, self.weight)
        answers.append(y)
        if len(answers) % 7 == 0:
            gc.collect()
        return y
