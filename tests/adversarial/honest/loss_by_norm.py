"""squared_error | odd but legal | a single number, computed in another way | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x - x.sin()).square().mean()
