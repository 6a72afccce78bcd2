"""gelu | odd but legal | x times the normal distribution | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.special.ndtr(x)
