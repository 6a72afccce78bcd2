"""learned_scale | unsafe numerics | the maximum is taken before a scale that may be negative | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 0.35))
    def forward(self, x):
        e = torch.exp((x - x.amax(-1, keepdim=True)) * self.scale)
        return e / e.sum(-1, keepdim=True)
