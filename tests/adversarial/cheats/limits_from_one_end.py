"""scaled | input or RNG prediction | the upper limit is not read: it is the lower one's opposite | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, factor, limits):
        return torch.clamp(x * factor, limits[0], -limits[0])
