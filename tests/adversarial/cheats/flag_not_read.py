"""flagged | input or RNG prediction | the flag is not read: it is always true | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x, y, gated):
        return torch.sigmoid(y).mul_(x)
