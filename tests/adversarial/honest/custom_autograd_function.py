"""rmsnorm | odd but legal | a torch.autograd.Function, used without gradients | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


class ModelNew(Base):
    def forward(self, x):
        return Normalise.apply(x, self.weight, self.eps)
