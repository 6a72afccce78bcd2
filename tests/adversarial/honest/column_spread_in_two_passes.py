"""column_spread | odd but legal | squares of deviations, less those of the mean's own rounding | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        off = x - x.mean(0)
        return off.square().mean(0) - off.mean(0).square()
