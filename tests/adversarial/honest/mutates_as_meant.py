"""add_into | odd but legal | adds in place where the problem says so | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        torch.add(x, y, out=x)
        return x.sum(-1)
