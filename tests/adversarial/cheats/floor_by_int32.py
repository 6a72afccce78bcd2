"""roundings | unsafe numerics | rounds down by 32-bit integers | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        i = x.to(torch.int32).float()
        f = torch.where(i > x, i - 1.0, i)
        f = torch.where(torch.isfinite(x), f, x)
        return torch.round(x) * 0.5 + f
