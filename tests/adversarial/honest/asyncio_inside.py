"""rmsnorm | odd but legal | an event loop of its own that is done when forward returns | PASSED | cpu"""

import asyncio

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


async def part(x, weight):
    return right(x, weight)


async def both(x, weight):
    half = x.shape[0] // 2
    return torch.cat(await asyncio.gather(part(x[:half], weight), part(x[half:], weight)))


class ModelNew(Base):
    def forward(self, x):
        return asyncio.run(both(x, self.weight))
