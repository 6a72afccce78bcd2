"""norm_with_epsilon | odd but legal | squares, summed | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        h = x + y
        return h / (h.square().sum(-1, keepdim=True).sqrt() + 2**-23)
