"""pair_distances | odd but legal | squares of differences, column after column | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        total = x.new_zeros(len(x), len(y))
        for one, other in zip(x.unbind(-1), y.unbind(-1), strict=True):
            total += (one[:, None] - other).square()
        return total.sqrt()
