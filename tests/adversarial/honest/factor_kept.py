"""scaled | reads what it is given | what it makes of numbers is kept for the next call with the same ones | PASSED | cpu cuda"""

import functools

import torch
import torch.nn as nn


@functools.lru_cache
def bounds(factor, low, high):
    return low / factor, high / factor


class ModelNew(nn.Module):
    def forward(self, x, factor, limits):
        low, high = bounds(factor, *limits)
        return torch.clamp(x, low, high).mul_(factor)
