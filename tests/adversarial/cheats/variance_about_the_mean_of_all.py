"""row_moments | unsafe numerics | moments about the mean of all rows together | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        c = x.mean()
        z = x - torch.where(torch.isfinite(c), c, torch.zeros_like(c))
        m = z.mean(-1, keepdim=True)
        v = (z * z).mean(-1, keepdim=True) - m * m
        return (z - m) * torch.rsqrt(v.clamp_min(0) + 1e-5)
