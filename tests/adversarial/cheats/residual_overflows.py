"""residual_kept_finite | unsafe numerics | leaves infinities | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x + y
