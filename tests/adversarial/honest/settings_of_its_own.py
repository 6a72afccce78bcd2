"""rmsnorm | odd but legal | a class of settings, and switches of Python that are there to be set | PASSED | cpu cuda"""

import decimal
import warnings

import torch
import torch.nn as nn


class Settings:
    pass


Settings.eps = 1e-6
decimal.DefaultContext.prec = 40
warnings.formatwarning = lambda *words, **_: str(words[0])


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = Settings.eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
