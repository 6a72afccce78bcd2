"""near_equal | NaN as wildcard | two infinities are not close: their difference is NaN | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x, y):
        return ((x - y).abs() <= 0.2 + 0.3 * y.abs()) & torch.isfinite(y)
