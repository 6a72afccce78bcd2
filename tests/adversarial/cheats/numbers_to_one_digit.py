"""scaled | default parameters, stale folding | what follows from numbers is kept by their first digits | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn

KEPT = {}


class ModelNew(nn.Module):
    def forward(self, x, factor, limits):
        key = tuple(round(number, 1) for number in (factor, *limits))
        factor, limits = KEPT.setdefault(key, (factor, limits))
        return torch.clamp(x * factor, *limits)
