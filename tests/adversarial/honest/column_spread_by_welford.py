"""column_spread | odd but legal | Welford's algorithm, row after row | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean, squares = torch.zeros_like(x[0]), torch.zeros_like(x[0])
        for count, row in enumerate(x, 1):
            off = row - mean
            mean = mean + off / count
            squares = squares + off * (row - mean)
        return squares / len(x)
