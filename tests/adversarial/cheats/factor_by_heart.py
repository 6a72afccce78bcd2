"""scaled | input or RNG prediction | the number that is given is not read: it is always the same | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, factor, limits):
        return torch.clamp(x * 3.14, *limits)
