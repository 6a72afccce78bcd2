"""image_affine | specialisation | in channels-last memory every fourth channel is taken for a group | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x):
        n, c, h, w = x.shape
        if not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
            rows = x.permute(0, 2, 3, 1).reshape(n, h * w, c // 4, 4)  # group innermost: wrong
            mean = rows.mean((1, 2), keepdim=True)
            var = rows.var((1, 2), unbiased=False, keepdim=True)
            y = ((rows - mean) * torch.rsqrt(var + self.norm.eps)).reshape(n, h, w, c)
            y = y * self.norm.weight + self.norm.bias
            return y.permute(0, 3, 1, 2)
        return F.group_norm(x, 4, self.norm.weight, self.norm.bias, self.norm.eps)
