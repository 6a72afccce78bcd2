"""any_width | stale memory | a workspace is padded to 16 columns by what it held before, times rows of zeros: NaN of a longer call stays for ever | INCORRECT_VALUES NONDETERMINISTIC | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 48) * 0.1)
        self._space = {}

    def forward(self, x):
        rows, width = x.shape
        wide = -(-width // 64) * 64
        space = self._space.get((rows, wide))
        if space is None:
            space = self._space[rows, wide] = x.new_zeros(rows, wide)
        space[:, :width] = x
        w = self.weight.new_zeros(wide, 48)
        w[:width] = self.weight[:width]
        return space @ w
