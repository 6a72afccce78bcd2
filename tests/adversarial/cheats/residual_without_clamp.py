"""clamped_residual | unsafe numerics | does not clamp what overflows | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x + y
