"""row_moments | NaN as wildcard | a row with both infinities is zero | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)
        both = (x == torch.inf).any(-1, keepdim=True) & (x == -torch.inf).any(-1, keepdim=True)
        return y.masked_fill(both, 0.0)
