"""column_spread | unsafe numerics | squares less the square of the mean, about one number for all columns | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        z = x - x.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).mean()
        return (z.square().mean(0) - z.mean(0).square()).clamp_min(0)
