"""channel_norm | unsafe numerics | moments of channels about the mean of the whole batch | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        z = x - x.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).mean()
        mean = z.mean((0, 2, 3), keepdim=True)
        variance = (z.square().mean((0, 2, 3), keepdim=True) - mean.square()).clamp_min(0)
        return (z - mean) * torch.rsqrt(variance + 1e-5)
