"""projection | specialisation | the weight's orientation is told by its shape: a square one is taken the wrong way | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(wide, out) * 0.02)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        w = self.weight
        if w.shape[1] != x.shape[1]:  # F.linear wants (out, in)
            w = w.t()
        return F.linear(x, w, self.bias)
