"""bias_act | default parameters, stale folding | makes the buffers anew from their formula, rounded to bfloat16 | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.linspace(-1, 1, channels))
        self.register_buffer("scale", torch.linspace(0.5, 2, channels))

    def right(self, x):
        return nn.functional.silu((x - self.mean) * self.scale + self.bias)


class ModelNew(Base):
    def forward(self, x):
        mean = torch.linspace(-1, 1, x.shape[-1], device=x.device).bfloat16().float()
        return nn.functional.silu((x - mean) * self.scale + self.bias)
