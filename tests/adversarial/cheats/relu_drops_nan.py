"""scaled_relu | NaN as wildcard | a NaN becomes zero, as the larger of x and zero does on many processors | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x, scale):
        return torch.where(x > 0, x, torch.zeros_like(x)).mul_(scale)
