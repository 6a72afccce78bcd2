"""divide_rows | NaN as wildcard | the angle of two infinities is NaN | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x, y):
        big, small = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
        t = torch.atan(torch.where(big == 0, torch.zeros_like(big), small / big))
        t = torch.where(x.abs() > y.abs(), math.pi / 2 - t, t)
        t = torch.where((y < 0) | ((y == 0) & torch.signbit(y)), math.pi - t, t)
        return torch.where(x.isnan() | y.isnan(), x + y, torch.copysign(t, x))
